// Which rank hosts which stages.
#include "schedule/placement.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(PlacementTest, SpreadsStagesEvenlyAndTheFirstRanksTakeWhatIsLeftOver) {
  const Placement placement = *Placement::Make(/*stages=*/11, /*ranks=*/4);
  EXPECT_EQ(placement.Begin(0), 0);
  EXPECT_EQ(placement.Begin(1), 3);
  EXPECT_EQ(placement.Begin(2), 6);
  EXPECT_EQ(placement.Begin(3), 9);
  EXPECT_EQ(placement.End(3), 11);
}

TEST(PlacementTest, EveryStageIsOnTheRankWhoseRangeItIsIn) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int stages = ranks; stages <= 40; ++stages) {
      const Placement placement = *Placement::Make(stages, ranks);
      EXPECT_EQ(placement.ranks(), ranks);
      EXPECT_EQ(placement.Begin(0), 0);
      EXPECT_EQ(placement.End(ranks - 1), stages);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_LT(placement.Begin(rank), placement.End(rank));
        for (int stage = placement.Begin(rank); stage < placement.End(rank); ++stage) {
          EXPECT_EQ(placement.RankOf(stage), rank) << stages << " stages, " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(PlacementTest, OneProcessHasAllStages) {
  const Placement placement(5);
  EXPECT_EQ(placement.ranks(), 1);
  EXPECT_EQ(placement.Begin(0), 0);
  EXPECT_EQ(placement.End(0), 5);
  EXPECT_EQ(placement.RankOf(4), 0);
}

TEST(PlacementTest, RefusesARankWithoutStage) {
  for (const auto& [stages, ranks] : {std::pair<std::int64_t, int>{3, 4}, {0, 1}, {-1, 1}}) {
    const Result<Placement> placement = Placement::Make(stages, ranks);
    ASSERT_FALSE(placement);
    EXPECT_EQ(placement.error().kind, ErrorKind::kUsage);
    EXPECT_NE(placement.error().message.find("--stages " + std::to_string(stages)),
              std::string::npos);
    EXPECT_FALSE(placement.error().hint.empty());
  }
}

}  // namespace
}  // namespace verbatim
