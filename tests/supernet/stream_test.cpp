// Proves draws to the bit (literals from an independent Philox in Python), their uniformity, and
// how batches are cut. Seeds are fixed: the tests below repeat exactly.
#include "supernet/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "tests/supernet/spec_text.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Six blocks of five candidates and six of four.
Spec TwelveBlocks() {
  const std::string five = R"({"op": "skip"}, {"op": "conv"}, {"op": "conv"}, {"op": "conv"},)"
                           R"( {"op": "conv"})";
  const std::string four = R"({"op": "skip"}, {"op": "conv"}, {"op": "conv"}, {"op": "conv"})";
  return ParseOrDie(WithBlock(R"({"repeat": 6, "candidates": [)" + five +
                              R"(]}, {"repeat": 6, "candidates": [)" + four + "]}")
                        .Text());
}

Choices DrawUniform(std::uint64_t seed, std::int64_t seq) {
  Spec spec = TwelveBlocks();
  spec.seed = seed;
  const auto sampler = MakeSampler(spec, BuildOrDie(spec), "");
  return sampler ? (*sampler)->Draw(seq) : Choices{};
}

TEST(Stream, FirstWordsOfTheSpecPage) {
  const PhiloxBlock block = RandomBlock({.seed = 1, .purpose = RandomPurpose::kSampler}, 0);
  EXPECT_THAT(block.word, ElementsAre(0xc12fe4a3, 0x548a711d, 0x997c7807, 0x1abbd92f));
}

TEST(Stream, UniformDrawsAreLiteral) {
  EXPECT_THAT(DrawUniform(1, 0), ElementsAre(3, 1, 2, 0, 2, 3, 1, 0, 0, 2, 1, 0));
  EXPECT_THAT(DrawUniform(1, 1), ElementsAre(1, 4, 1, 3, 0, 3, 1, 2, 3, 0, 1, 3));
  EXPECT_THAT(DrawUniform(1, 299), ElementsAre(0, 1, 1, 3, 0, 1, 0, 3, 1, 0, 1, 0));
  EXPECT_THAT(DrawUniform(0x123456789abcdef0, 7), ElementsAre(3, 4, 1, 2, 4, 4, 1, 1, 3, 2, 3, 1));
}

TEST(Stream, EvaluatedSubnetsHaveAStreamOfTheirOwn) {
  const RandomKey key{.seed = 1, .purpose = RandomPurpose::kEvaluationSubnet, .c = 3};
  EXPECT_THAT(DrawUniformChoices(BuildOrDie(TwelveBlocks()), key),
              ElementsAre(3, 4, 3, 2, 1, 1, 2, 3, 2, 3, 3, 2));
}

/// Sum of (observed - expected)² / expected over equally likely cells.
double ChiSquare(const std::vector<int>& counts, double expected) {
  return std::accumulate(counts.begin(), counts.end(), 0.0, [&](double sum, int count) {
    return sum + (count - expected) * (count - expected) / expected;
  });
}

TEST(Stream, UniformDrawsAreUniform) {
  constexpr int kDraws = 20000;
  Spec spec = TwelveBlocks();
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    spec.seed = seed;
    const auto sampler = MakeSampler(spec, BuildOrDie(spec), "");
    ASSERT_TRUE(sampler);
    std::vector<std::vector<int>> counts(12, std::vector<int>(5));
    std::vector<int> pairs(20);
    for (int seq = 0; seq < kDraws; ++seq) {
      const Choices choices = (*sampler)->Draw(seq);
      for (std::size_t block = 0; block < 12; ++block) ++counts[block][choices[block]];
      ++pairs[choices[0] * 4u + choices[6]];
    }
    for (std::size_t block = 0; block < 12; ++block) {
      counts[block].resize(block < 6 ? 5 : 4);
      // 99.99 % points of chi-square with 4 and 3 degrees of freedom.
      EXPECT_LT(ChiSquare(counts[block], kDraws / double(counts[block].size())),
                block < 6 ? 23.5 : 21.1)
          << "block " << block << ", seed " << seed;
    }
    EXPECT_LT(ChiSquare(pairs, kDraws / 20.0), 50.8) << "seed " << seed;  // 19 degrees
  }
}

TEST(Stream, ListComesFromAFileBesideTheSpec) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  std::ofstream(folder / "subnets.json") << "[[1], [0], [1]]";
  SpecText text;
  text.top = R"("sampler": {"kind": "list", "file": "subnets.json"})";
  text.sizes = R"("subnets": 3, "batch": 8)";
  Spec spec = ParseOrDie(text.Text());
  const auto sampler = MakeSampler(spec, BuildOrDie(spec), folder);
  ASSERT_TRUE(sampler) << sampler.error().message;
  EXPECT_THAT((*sampler)->Draw(0), ElementsAre(1));
  EXPECT_THAT((*sampler)->Draw(1), ElementsAre(0));

  spec.sampler.file = "missing.json";
  const auto missing = MakeSampler(spec, BuildOrDie(spec), folder);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(missing.error().message, HasSubstr("missing.json"));
  spec.sampler.file = ".";
  EXPECT_FALSE(MakeSampler(spec, BuildOrDie(spec), folder));
}

std::vector<std::uint32_t> Range(std::uint32_t size) {
  std::vector<std::uint32_t> pool(size);
  std::iota(pool.begin(), pool.end(), 0u);
  return pool;
}

TEST(DrawSamples, IsLiteral) {
  EXPECT_THAT(DrawSamples(Range(1438), 8, {.seed = 1, .purpose = RandomPurpose::kBatch}),
              ElementsAre(1352, 1087, 359, 773, 97, 117, 985, 51));
  const std::vector<std::uint32_t> even = {10, 12, 14, 16, 18, 20, 22, 24, 26, 28};
  EXPECT_THAT(DrawSamples(even, 10, {.seed = 5, .purpose = RandomPurpose::kBatch, .c = 2}),
              ElementsAre(12, 10, 16, 22, 20, 28, 18, 24, 26, 14));
  EXPECT_TRUE(DrawSamples({}, 0, {.seed = 1, .purpose = RandomPurpose::kBatch}).empty());
}

TEST(DrawSamples, EqualsAWholeShuffleAndRepeatsNothing) {
  for (std::uint32_t seq = 0; seq < 200; ++seq) {
    const RandomKey key{.seed = 9, .purpose = RandomPurpose::kBatch, .c = seq};
    const std::uint32_t size = 1 + seq % 40;
    const std::uint32_t count = 1 + (seq * 7) % size;
    std::vector<std::uint32_t> shuffled = Range(size);
    KeyedRandom random(key);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::swap(shuffled[i], shuffled[i + random.Below(size - i)]);
    }
    shuffled.resize(count);
    const auto samples = DrawSamples(Range(size), count, key);
    EXPECT_EQ(samples, shuffled) << "seq " << seq;
    EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), count);
  }
}

TEST(DrawSamples, TakesEverySampleEquallyOften) {
  constexpr int kBatches = 10000;
  std::vector<int> counts(50);
  const auto pool = Range(50);
  for (std::uint32_t seq = 0; seq < kBatches; ++seq) {
    const RandomKey key{.seed = 4, .purpose = RandomPurpose::kBatch, .c = seq};
    for (const std::uint32_t sample : DrawSamples(pool, 5, key)) ++counts[sample];
  }
  EXPECT_LT(ChiSquare(counts, kBatches * 5 / 50.0), 95.0);  // above the 99.99 % point, 49 degrees
}

TEST(MicrobatchRows, CutsInOrderAndLeavesTheRestToTheLast) {
  const struct {
    std::int64_t batch, microbatches;
    std::vector<std::int64_t> sizes;
  } cases[] = {{8, 1, {8}},       {8, 2, {4, 4}},       {10, 4, {3, 3, 3, 1}}, {7, 2, {4, 3}},
               {3, 3, {1, 1, 1}}, {9, 4, {3, 3, 3, 0}}, {5, 4, {2, 2, 1, 0}}};
  for (const auto& c : cases) {
    std::int64_t next = 0;
    for (std::int64_t m = 0; m < c.microbatches; ++m) {
      const RowRange rows = MicrobatchRows(c.batch, c.microbatches, m);
      EXPECT_EQ(rows.first, next);
      EXPECT_EQ(rows.size(), c.sizes[static_cast<std::size_t>(m)])
          << c.batch << "/" << c.microbatches << " part " << m;
      next = rows.last;
    }
    EXPECT_EQ(next, c.batch);
  }
}

}  // namespace
}  // namespace verbatim
