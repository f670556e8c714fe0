// Proves that the canonical encoding is little-endian, of fixed width, and nothing else.
#include "base/encoding.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace verbatim {
namespace {

using namespace std::string_literals;

TEST(Encoder, StartsEmpty) {
  EXPECT_EQ(Encoder().bytes(), "");
}

TEST(Encoder, WritesFixedWidthLittleEndian) {
  EXPECT_EQ(Encoder().U8(0xab).bytes(), "\xab");
  EXPECT_EQ(Encoder().U32(0x01020304).bytes(), "\x04\x03\x02\x01");
  EXPECT_EQ(Encoder().U64(0x0102030405060708).bytes(), "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(Encoder().U32(0).bytes(), std::string(4, '\0'));
}

TEST(Encoder, WritesNegativeNumbersInTwosComplement) {
  EXPECT_EQ(Encoder().I64(-1).bytes(), std::string(8, '\xff'));
  EXPECT_EQ(Encoder().I64(-2).bytes(), "\xfe\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(Encoder().I64(std::numeric_limits<std::int64_t>::min()).bytes(), "\0\0\0\0\0\0\0\x80"s);
}

TEST(Encoder, PrefixesStringsButNotBytes) {
  EXPECT_EQ(Encoder().String("ab").bytes(), "\2\0\0\0ab"s);
  EXPECT_EQ(Encoder().String("").bytes(), "\0\0\0\0"s);
  EXPECT_EQ(Encoder().String("a\0b"s).bytes(), "\3\0\0\0a\0b"s);
  EXPECT_EQ(Encoder().Bytes("ab", 2).bytes(), "ab");
  EXPECT_EQ(Encoder().Bytes("", 0).bytes(), "");
}

TEST(Encoder, AppendsInOrderWithoutPadding) {
  EXPECT_EQ(Encoder().U8(1).U32(2).String("x").U64(3).bytes(),
            "\1\2\0\0\0\1\0\0\0x\3\0\0\0\0\0\0\0"s);
}

TEST(Encoder, StringsCannotRunIntoEachOther) {
  EXPECT_NE(Encoder().String("ab").String("c").bytes(), Encoder().String("a").String("bc").bytes());
}

}  // namespace
}  // namespace verbatim
