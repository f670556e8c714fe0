// Proves that the split is the documented permutation (literals from an independent Python
// program), that it is a partition, and how the number held out is rounded.
#include "trainer/data/split.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitTest, IsTheDocumentedPermutation) {
  EXPECT_THAT(SplitHeldOut(10, 0.3, 0).held_out, ElementsAre(0, 2, 7));
  EXPECT_THAT(SplitHeldOut(10, 0.3, 0).train, ElementsAre(1, 3, 4, 5, 6, 8, 9));
  EXPECT_THAT(SplitHeldOut(10, 0.3, 1).held_out, ElementsAre(2, 4, 7));
  EXPECT_THAT(SplitHeldOut(12, 0.25, 0x123456789abcdef0).held_out, ElementsAre(3, 10, 11));
}

TEST(SplitTest, IsAPartitionInAscendingOrder) {
  for (const std::uint32_t size : {0u, 1u, 2u, 7u, 1000u}) {
    for (const double fraction : {0.0, 0.1, 0.5, 0.999}) {
      const Split split = SplitHeldOut(size, fraction, 11);
      EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
      EXPECT_TRUE(std::is_sorted(split.held_out.begin(), split.held_out.end()));
      std::vector<std::uint32_t> all(split.train);
      all.insert(all.end(), split.held_out.begin(), split.held_out.end());
      std::sort(all.begin(), all.end());
      std::vector<std::uint32_t> expected(size);
      std::iota(expected.begin(), expected.end(), 0u);
      EXPECT_EQ(all, expected) << size << " × " << fraction;
    }
  }
}

TEST(SplitTest, NumberHeldOutRoundsHalvesUp) {
  const struct {
    std::uint32_t size;
    double fraction;
    std::size_t held_out;
  } cases[] = {{10, 0.0, 0},  {10, 0.04, 0},      {10, 0.05, 1},    {10, 0.14, 1}, {10, 0.15, 2},
               {5, 0.3, 2},   {5, 0.5, 3},        {1797, 0.2, 359}, {1, 0.4, 0},   {1, 0.5, 1},
               {3, 0.999, 3}, {60000, 0.1, 6000}, {0, 0.5, 0}};
  for (const auto& [size, fraction, held_out] : cases) {
    const Split split = SplitHeldOut(size, fraction, 3);
    EXPECT_EQ(split.held_out.size(), held_out) << size << " × " << fraction;
    EXPECT_EQ(split.train.size(), size - held_out) << size << " × " << fraction;
  }
}

TEST(SplitTest, DependsOnTheSeedAndOnAllOfIt) {
  const auto held_out = [](std::uint64_t seed) { return SplitHeldOut(1000, 0.5, seed).held_out; };
  EXPECT_EQ(held_out(1), held_out(1));
  EXPECT_NE(held_out(1), held_out(2));
  EXPECT_NE(held_out(1), held_out(1 + (std::uint64_t{1} << 32)));
}

TEST(SplitTest, ALargerFractionKeepsTheSmallersHeldOut) {
  const auto small = SplitHeldOut(500, 0.1, 9).held_out;
  const auto large = SplitHeldOut(500, 0.4, 9).held_out;
  EXPECT_TRUE(std::includes(large.begin(), large.end(), small.begin(), small.end()));
  EXPECT_THAT(SplitHeldOut(500, 0.0, 9).held_out, IsEmpty());
}

TEST(SplitDeathTest, FractionIsBelowOne) {
  EXPECT_DEATH(SplitHeldOut(10, 1.0, 0), "fraction = 1");
  EXPECT_DEATH(SplitHeldOut(10, -0.1, 0), "fraction = -0.1");
}

}  // namespace
}  // namespace verbatim
