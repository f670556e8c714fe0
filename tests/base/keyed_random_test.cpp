// Proves that keyed random numbers are the ones docs/spec.md states, that names never share a
// stream, and that Below is in range and unbiased.
#include "base/keyed_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace verbatim {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> FirstWords(const RandomKey& key, int count) {
  KeyedRandom random(key);
  std::vector<std::uint32_t> words;
  for (int i = 0; i < count; ++i) words.push_back(random.NextWord());
  return words;
}

// The literals come from an independent implementation of the page, in Python.
TEST(KeyedRandom, StreamsMatchTheirLiterals) {
  EXPECT_THAT(FirstWords({0x0123456789abcdef, RandomPurpose::kInitialWeights, 2, 3, 4}, 6),
              ElementsAre(0xc65abff0, 0x7efd1f05, 0x56d458c5, 0xf6cad19a, 0xa972b4b3, 0xab58c5df));
  EXPECT_THAT(
      FirstWords({0x0123456789abcdef, RandomPurpose::kDropout, 0xffffff, 0xffffffff, 0xfffffffe},
                 6),
      ElementsAre(0x0df47e13, 0x9b71dedd, 0x07bd663d, 0xb5fdbfc3, 0x51878c73, 0x3f931bb5));
}

TEST(KeyedRandom, PurposesKeepTheirNumbers) {
  EXPECT_EQ(static_cast<int>(RandomPurpose::kInitialWeights), 1);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kSampler), 2);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kBatch), 3);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kDropout), 4);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kSplit), 5);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kEvaluationSubnet), 6);
  EXPECT_EQ(static_cast<int>(RandomPurpose::kCalibrationBatch), 7);
}

TEST(KeyedRandom, ReadsTheBlocksInOrder) {
  const RandomKey key{42, RandomPurpose::kBatch, 0, 0, 9};
  const auto words = FirstWords(key, 12);
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(words[i], RandomBlock(key, i / 4).word[i % 4]) << "word " << i;
  }
}

TEST(KeyedRandom, EveryPartOfTheNameNamesAnotherStream) {
  const RandomKey keys[] = {
      {1, RandomPurpose::kDropout, 1, 1, 1},
      {2, RandomPurpose::kDropout, 1, 1, 1},
      {1 + (std::uint64_t{1} << 32), RandomPurpose::kDropout, 1, 1, 1},
      {1, RandomPurpose::kBatch, 1, 1, 1},
      {1, RandomPurpose::kDropout, 2, 1, 1},
      {1, RandomPurpose::kDropout, 1, 2, 1},
      {1, RandomPurpose::kDropout, 1, 1, 2},
  };
  std::set<std::vector<std::uint32_t>> streams;
  for (const RandomKey& key : keys) streams.insert(FirstWords(key, 4));
  EXPECT_EQ(streams.size(), std::size(keys));
}

TEST(UniformFloat, CoversZeroToBelowOneExactly) {
  EXPECT_EQ(UniformFloat(0), 0.0f);
  EXPECT_EQ(UniformFloat(0xff), 0.0f);
  EXPECT_EQ(UniformFloat(0x100), 0x1p-24f);
  EXPECT_EQ(UniformFloat(0x80000000), 0.5f);
  EXPECT_EQ(UniformFloat(0xffffffff), 1.0f - 0x1p-24f);
}

TEST(Below, MatchesItsLiterals) {
  KeyedRandom random({7, RandomPurpose::kSampler, 0, 0, 11});
  std::vector<std::uint32_t> drawn;
  for (std::uint32_t bound : {1u, 2u, 3u, 6u, 10u, 23u, 1000u, 65536u, 0x80000001u, 0xffffffffu}) {
    drawn.push_back(random.Below(bound));
  }
  EXPECT_THAT(drawn, ElementsAre(0, 1, 1, 0, 3, 12, 573, 44341, 1294583906, 4067177870));
}

// About every second word is refused at this bound.
TEST(Below, MatchesItsLiteralsWhereWordsAreRefused) {
  KeyedRandom random({7, RandomPurpose::kSampler, 0, 0, 12});
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < 8; ++i) drawn.push_back(random.Below(0x80000001u));
  EXPECT_THAT(drawn, ElementsAre(186353586, 446452698, 1041456229, 2050989879, 795416306,
                                 1422386469, 1642806048, 1687892928));
}

TEST(Below, StaysInRangeAndReachesEveryValue) {
  KeyedRandom random({3, RandomPurpose::kSampler, 0, 0, 0});
  for (std::uint32_t bound = 1; bound <= 64; ++bound) {
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < 40 * bound; ++i) seen.insert(random.Below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
}

// Multiplying without refusing words would give the residues 1/2, 1/4 and 1/4 here.
TEST(Below, IsUnbiasedWhereMultiplyingAloneIsNot) {
  constexpr int kDraws = 90000;
  KeyedRandom random({5, RandomPurpose::kSampler, 0, 0, 0});
  std::array<int, 3> count{};
  for (int i = 0; i < kDraws; ++i) ++count[random.Below(0xc0000000u) % 3];
  // Five standard deviations of a binomial count with p = 1/3.
  for (int n : count) EXPECT_NEAR(n, kDraws / 3, 708);
}

TEST(Below, IsUniformOverSmallBounds) {
  constexpr int kPerValue = 2000;
  for (std::uint32_t bound : {2u, 5u, 23u}) {
    KeyedRandom random({6, RandomPurpose::kSampler, 0, 0, bound});
    std::vector<int> count(bound);
    for (std::uint32_t i = 0; i < kPerValue * bound; ++i) ++count[random.Below(bound)];
    for (int n : count) EXPECT_NEAR(n, kPerValue, 224) << "bound " << bound;
  }
}

}  // namespace
}  // namespace verbatim
