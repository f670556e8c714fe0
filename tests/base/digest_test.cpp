// Proves that a digest and its hexadecimal form are inverse, and what is refused as one.
#include "base/digest.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

constexpr const char* kHex = "000102030405060708090a0b0c0d0eff";

Digest Counting() {
  Digest digest;
  for (std::size_t i = 0; i < 15; ++i) digest.bytes[i] = static_cast<std::uint8_t>(i);
  digest.bytes[15] = 0xff;
  return digest;
}

TEST(Digest, HexIsLowerCaseInByteOrder) {
  EXPECT_EQ(ToHex(Counting()), kHex);
  EXPECT_EQ(ToHex(Digest{}), "00000000000000000000000000000000");
  EXPECT_EQ(ToShortHex(Counting()), "00010203");
}

TEST(Digest, FromHexIsTheInverseInEitherCase) {
  EXPECT_EQ(DigestFromHex(kHex), Counting());
  EXPECT_EQ(DigestFromHex("000102030405060708090A0B0C0D0EFF"), Counting());
}

TEST(Digest, FromHexRefusesEveryOtherLength) {
  std::string hex = kHex;
  hex.append(2, '0');
  for (std::size_t length = 0; length <= hex.size(); ++length) {
    EXPECT_EQ(DigestFromHex(hex.substr(0, length)).has_value(), length == 32) << length;
  }
}

TEST(Digest, FromHexRefusesWhatIsNoDigitAnywhere) {
  for (std::size_t place = 0; place < 32; ++place) {
    for (char c : {'g', 'G', ' ', '/', ':', '@', '`', '\0', '\xff'}) {
      std::string hex = kHex;
      hex[place] = c;
      EXPECT_FALSE(DigestFromHex(hex)) << "place " << place << ", code " << int{c};
    }
  }
}

TEST(Digest, ComparesByBytesFromTheFirst) {
  Digest small, large;
  small.bytes[15] = 0xff;
  large.bytes[0] = 1;
  EXPECT_LT(small, large);
  EXPECT_EQ(small, small);
  EXPECT_NE(small, large);
}

}  // namespace
}  // namespace verbatim
