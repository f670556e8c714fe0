// Proves that the shipped digits are the data set they claim to be, and pins the digest and the
// split of a whole data set (literals from an independent Python program with its own xxHash).
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "recorder/digest.h"
#include "trainer/data/idx.h"
#include "trainer/data/image_digest.h"
#include "trainer/data/split.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

class DigitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto splits = LoadIdxFolder(VERBATIM_DIGITS_FOLDER);
    ASSERT_TRUE(splits.has_value()) << splits.error().message;
    EXPECT_FALSE(splits->test.has_value());
    digits_ = std::move(splits->train);
  }

  ImageSet digits_;
};

TEST_F(DigitsTest, ShapeAndClasses) {
  EXPECT_EQ(digits_.size(), 1797);
  EXPECT_EQ(digits_.channels, 1);
  EXPECT_EQ(digits_.height, 8);
  EXPECT_EQ(digits_.width, 8);
  EXPECT_EQ(digits_.classes, 10);
  EXPECT_EQ(digits_.pixels.size(), 115008u);
}

TEST_F(DigitsTest, ImagesPerClass) {
  std::array<int, 10> counts{};
  for (const std::uint8_t label : digits_.labels) ++counts.at(label);
  EXPECT_THAT(counts, ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
}

TEST_F(DigitsTest, Pixels) {
  EXPECT_EQ(*std::max_element(digits_.pixels.begin(), digits_.pixels.end()), 16);
  EXPECT_EQ(std::accumulate(digits_.pixels.begin(), digits_.pixels.end(), 0), 561718);
  const std::vector<std::uint8_t> second_row_of_first(digits_.pixels.begin() + 8,
                                                      digits_.pixels.begin() + 16);
  EXPECT_EQ(digits_.labels[0], 0);
  EXPECT_THAT(second_row_of_first, ElementsAre(0, 0, 13, 15, 10, 15, 5, 0));
}

TEST_F(DigitsTest, Digest) {
  EXPECT_EQ(ToHex(DigestImages(digits_)), "a8de18265146627c5f4f083534e5e992");
}

TEST_F(DigitsTest, DigestSeesPixelsLabelsAndShape) {
  const Digest whole = DigestImages(digits_);
  ImageSet other = digits_;
  other.pixels.back() ^= 1;
  EXPECT_NE(DigestImages(other), whole);
  other = digits_;
  other.labels.front() = 1;
  EXPECT_NE(DigestImages(other), whole);
  other = digits_;
  other.height = 4;
  other.width = 16;
  EXPECT_NE(DigestImages(other), whole);
}

TEST_F(DigitsTest, Split) {
  const Split split = SplitHeldOut(static_cast<std::uint32_t>(digits_.size()), 0.2, 42);
  ASSERT_EQ(split.held_out.size(), 359u);
  EXPECT_EQ(split.train.size(), 1438u);
  // Over the held-out indices as little-endian u32.
  const Digest digest = DigestBytes(split.held_out.data(), 4 * split.held_out.size());
  EXPECT_EQ(ToHex(digest), "24c1ac8bf96bb6f79a84ce4ad1dff730");
}

}  // namespace
}  // namespace verbatim
