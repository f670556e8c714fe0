#include "base/decoder.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/encoding.h"

namespace verbatim {
namespace {

std::string Encoded() {
  Encoder out;
  out.U8(0xfe)
      .U32(0x89abcdef)
      .U64(0x0123456789abcdef)
      .I64(std::numeric_limits<std::int64_t>::min());
  return out.String("text").Bytes("raw", 3).bytes();
}

TEST(Decoder, ReadsWhatTheEncoderWrote) {
  const std::string bytes = Encoded();
  Decoder in(bytes);
  EXPECT_EQ(in.U8(), 0xfe);
  EXPECT_EQ(in.U32(), 0x89abcdefu);
  EXPECT_EQ(in.U64(), 0x0123456789abcdefu);
  EXPECT_EQ(in.I64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(in.String(), "text");
  EXPECT_EQ(in.left(), 3u);
  EXPECT_EQ(in.Bytes(3), "raw");
  EXPECT_EQ(in.left(), 0u);
  EXPECT_FALSE(in.failed());
}

TEST(Decoder, FailsWhereverTheBytesEnd) {
  const std::string whole = Encoded();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Decoder in(std::string_view(whole).substr(0, size));
    in.U8(), in.U32(), in.U64(), in.I64(), in.String(), in.Bytes(3);
    EXPECT_TRUE(in.failed()) << size;
    EXPECT_EQ(in.left(), 0u) << size;
  }
}

TEST(Decoder, ReadsNothingAfterItHasFailed) {
  const std::string bytes = "\x05\x01\x02\x03";
  Decoder in(bytes);
  EXPECT_EQ(in.U64(), 0u);
  EXPECT_EQ(in.U8(), 0u);
  EXPECT_EQ(in.String(), "");
  EXPECT_TRUE(in.failed());
}

TEST(Decoder, TakesNoLengthForMoreThanThereIs) {
  const std::string bytes(
      "\xff\xff\xff\xff"
      "abc",
      7);
  Decoder in(bytes);
  EXPECT_EQ(in.String(), "");
  EXPECT_TRUE(in.failed());
}

}  // namespace
}  // namespace verbatim
