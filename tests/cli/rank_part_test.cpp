// Proves when a rank's own part of a run stays, when it goes, and what an earlier one is worth.
#include "cli/rank_part.h"

#include <gmock/gmock.h>

#include "tests/recorder/sample_part.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

using test::SampleReport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RankPartTest : public ::testing::Test {
 protected:
  /// One process of rank 1 that finishes one subnet, or none.
  Result<std::string> Run(RankPartRequest request, std::int64_t seq, RunStatus status,
                          const std::string& spec = "{}") {
    request.record = folder_ / "run.db";
    RETURN_IF_ERROR(CheckRankPart(request, 1));
    ASSIGN_OR_RETURN(RankPart part, RankPart::Begin(request, spec, 1, 3));
    if (seq >= 0) {
      RETURN_IF_ERROR(part.sink().AddPart(seq, EncodeReport(seq, SampleReport(seq))));
    }
    return part.End(status);
  }

  test::TemporaryFolder folder_;
};

TEST_F(RankPartTest, GoesWithACompleteRunUnlessItIsToBeKept) {
  EXPECT_EQ(Run({}, 0, RunStatus::kComplete), "");
  EXPECT_THAT(folder_.Files(), IsEmpty());
  const auto kept = Run({.keep = true}, 0, RunStatus::kComplete);
  EXPECT_EQ(kept, "rank 1's part of the run is in " + (folder_ / "run.db.rank-1").string());
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db.rank-1"));
}

TEST_F(RankPartTest, StaysWithARunThatStoppedOrFailed) {
  for (const RunStatus status : {RunStatus::kInterrupted, RunStatus::kFailed}) {
    const auto told = Run({.force = true}, 0, status);
    ASSERT_TRUE(told.has_value()) << told.error().message;
    EXPECT_THAT(*told, HasSubstr("run.db.rank-1"));
    EXPECT_THAT(folder_.Files(), ElementsAre("run.db.rank-1"));
  }
}

TEST_F(RankPartTest, OfNothingGoes) {
  EXPECT_EQ(Run({.keep = true}, -1, RunStatus::kFailed), "");
  EXPECT_THAT(folder_.Files(), IsEmpty());
}

TEST_F(RankPartTest, ResumptionsAddToItUntilTheRunIsComplete) {
  ASSERT_TRUE(Run({}, 0, RunStatus::kFailed).has_value());
  const auto failed_again = Run({.resumes = true}, -1, RunStatus::kFailed);
  ASSERT_TRUE(failed_again.has_value());
  EXPECT_NE(*failed_again, "") << "the first process's subnet is in it";
  EXPECT_EQ(Run({.resumes = true}, 1, RunStatus::kComplete), "");
  EXPECT_THAT(folder_.Files(), IsEmpty());
}

TEST_F(RankPartTest, NewRunRefusesAnOldOneAndSoDoesAnothersResumption) {
  ASSERT_TRUE(Run({}, 0, RunStatus::kFailed).has_value());
  const auto again = Run({}, 0, RunStatus::kComplete);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  const auto other = Run({.resumes = true}, 0, RunStatus::kComplete, "{\"name\":\"other\"}");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(other.error().message, HasSubstr("of a run with another spec"));
  EXPECT_EQ(Run({.force = true}, 0, RunStatus::kComplete), "");
}

}  // namespace
}  // namespace verbatim
