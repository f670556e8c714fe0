// The equal partition covers all positions, leaves no stage empty, and differs by at most one.
#include "schedule/partition.h"

#include <gtest/gtest.h>

#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

TEST(PartitionTest, EveryStageCountUpToThePositions) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/9, /*candidates=*/1);
  const Choices choices(9, 0);
  for (std::int64_t stages = 1; stages <= space.positions(); ++stages) {
    const auto partition = MakeEqualPartition(space, stages);
    ASSERT_TRUE(partition.has_value());
    const StageRanges& ranges = (*partition)->Ranges(choices);
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
    const auto partition = MakeEqualPartition(space, stages);
    ASSERT_FALSE(partition.has_value());
    EXPECT_EQ(partition.error().kind, ErrorKind::kUsage);
    EXPECT_NE(partition.error().message.find("--stages"), std::string::npos);
  }
  const Error error = MakeEqualPartition(space, 5).error();
  EXPECT_NE(error.hint.find("--stages 4"), std::string::npos) << error.hint;
}

}  // namespace
}  // namespace verbatim
