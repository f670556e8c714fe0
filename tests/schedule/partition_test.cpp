// Every partition covers all positions and leaves no stage empty; the equal one differs by at most
// one position, the balanced one has the cheapest dearest stage there can be.
#include "schedule/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

TEST(PartitionTest, EveryStageCountUpToThePositions) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/9, /*candidates=*/1);
  const Choices choices(9, 0);
  for (std::int64_t stages = 1; stages <= space.positions(); ++stages) {
    const auto partition = MakePartition("equal", space, {}, stages);
    ASSERT_TRUE(partition.has_value());
    const StageRanges ranges = (*partition)->Ranges(choices);
    ASSERT_EQ(ranges.stages(), stages);
    EXPECT_EQ(ranges.Begin(0), 0);
    EXPECT_EQ(ranges.End(static_cast<int>(stages) - 1), space.positions());
    const int least = space.positions() / static_cast<int>(stages);
    for (int stage = 0; stage < stages; ++stage) {
      const int size = ranges.End(stage) - ranges.Begin(stage);
      EXPECT_GE(size, least);
      EXPECT_LE(size, least + 1);
      for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
        EXPECT_EQ(ranges.StageOf(position), stage);
      }
    }
  }
}

TEST(PartitionTest, RefusesMoreStagesThanPositionsAndFewerThanOne) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/2, /*candidates=*/1);
  for (const std::int64_t stages : {-1, 0, 5}) {
    const auto partition = MakePartition("equal", space, {}, stages);
    ASSERT_FALSE(partition.has_value());
    EXPECT_EQ(partition.error().kind, ErrorKind::kUsage);
    EXPECT_NE(partition.error().message.find("--stages"), std::string::npos);
  }
  const Error error = MakePartition("equal", space, {}, 5).error();
  EXPECT_NE(error.hint.find("--stages 4"), std::string::npos) << error.hint;
}

/// The dearest stage of the best contiguous ranges, by trying every one.
double CheapestDearest(std::span<const double> costs, int stages) {
  if (stages == 1) return std::accumulate(costs.begin(), costs.end(), 0.0);
  double best = std::numeric_limits<double>::infinity();
  double first_stage = 0.0;
  for (std::size_t size = 1; size + static_cast<std::size_t>(stages) <= costs.size() + 1; ++size) {
    first_stage += costs[size - 1];
    best = std::min(best, std::max(first_stage, CheapestDearest(costs.subspan(size), stages - 1)));
  }
  return best;
}

TEST(PartitionTest, BalancedHasTheCheapestDearestStageForEverySubnet) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/7, /*candidates=*/4);
  const CostTable costs = MakeTestCosts(space);
  for (const int stages : {1, 2, 3, 4, 9}) {
    const auto partition = MakePartition("balanced", space, costs, stages);
    ASSERT_TRUE(partition.has_value());
    for (std::uint32_t seq = 0; seq < 50; ++seq) {
      const Choices choices =
          DrawUniformChoices(space, RandomKey{1, RandomPurpose::kSampler, 0, 0, seq});
      std::vector<double> by_position;
      for (int position = 0; position < space.positions(); ++position) {
        const LayerCost& cost = costs.layers[space.LayerAt(position, choices).id];
        by_position.push_back(cost.forward + cost.backward);
      }
      const StageRanges ranges = (*partition)->Ranges(choices);
      ASSERT_EQ(ranges.stages(), stages);
      ASSERT_EQ(ranges.Begin(0), 0);
      ASSERT_EQ(ranges.End(stages - 1), space.positions());
      double dearest = 0.0;
      for (int stage = 0; stage < stages; ++stage) {
        ASSERT_LT(ranges.Begin(stage), ranges.End(stage));
        dearest = std::max(dearest, std::accumulate(by_position.begin() + ranges.Begin(stage),
                                                    by_position.begin() + ranges.End(stage), 0.0));
      }
      ASSERT_NEAR(dearest, CheapestDearest(by_position, stages), 1e-6) << "subnet " << seq;
    }
  }
}

TEST(PartitionTest, BalancedWithEqualBlocksAndFreeEndsIsTheEqualSplitOfBlocks) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/12, /*candidates=*/1);
  CostTable costs;
  costs.layers.resize(space.layers().size());
  for (const Layer& layer : space.layers()) {
    const bool is_block = layer.position > 0 && layer.position <= space.blocks();
    costs.layers[layer.id].forward = is_block ? 0.1 : 0.0;
  }
  const auto partition = MakePartition("balanced", space, costs, 4);
  ASSERT_TRUE(partition.has_value());
  EXPECT_EQ((*partition)->Ranges(Choices(12, 0)), StageRanges({0, 4, 7, 10, 14}));
}

TEST(PartitionTest, ExplicitSizes) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/4, /*candidates=*/1);
  const auto partition = MakePartition("1,3,2", space, {}, 3);
  ASSERT_TRUE(partition.has_value());
  EXPECT_EQ((*partition)->Ranges(Choices(4, 0)), StageRanges({0, 1, 4, 6}));
  const std::pair<const char*, const char*> cases[] = {
      {"2,0,4", "stage 1 would be empty"},
      {"2,-1,5", "stage 1 would be empty"},
      {"3,3", "2 stages, but --stages is 3"},
      {"2,2,1", "5 positions, but there are 6"},
      {"2,2,2147483647", "positions, but there are 6"},
      {"2,2,99999999999", "no such partition"},
      {"2,2,", "no such partition"},
      {"", "no such partition"},
      {"equals", "no such partition"},
  };
  for (const auto& [text, message] : cases) {
    const auto refused = MakePartition(text, space, {}, 3);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace verbatim
