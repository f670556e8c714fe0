// Proves what a comparison with a recorded reference adds to a verification.
#include "verify/against.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_run.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Verdict VerifyAgainst(const SampleRun& run, const SampleRun& reference) {
  const SampleReader reader(run);
  const SampleReader reference_reader(reference);
  Verdict verdict = ExamineRecord(reader, "run.db");
  const Status status = CompareAgainst(reader, reference_reader, "ref.db", {}, verdict);
  VERBATIM_CHECK(status.has_value(), "{}", status.error().message);
  return verdict;
}

TEST(Against, SaysThatAllIsEqualToTheReference) {
  SampleRun reference = MakeSampleRun();
  reference.run.stages = 3;
  const Verdict verdict = VerifyAgainst(MakeSampleRun(), reference);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(verdict.checks.back().name, kCheckReference);
  EXPECT_EQ(verdict.checks.back().detail, "12 of 12 subnets equal to ref.db");
  EXPECT_THAT(Summary(verdict), HasSubstr("(not re-executed); equal to ref.db"));
  EXPECT_THAT(RenderText(verdict), HasSubstr("stages: record 2, reference 3"));
}

TEST(Against, FindsTheFirstDifference) {
  SampleRun run = MakeSampleRun();
  run.subnets[4].loss_bits ^= 1;
  Seal(run);
  const Verdict verdict = VerifyAgainst(run, MakeSampleRun());
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.first_difference->seq, 4);
  EXPECT_EQ(verdict.comparison->origin_count, 1);
  EXPECT_EQ(verdict.checks.back().outcome, Outcome::kFailed);
  EXPECT_THAT(Summary(verdict),
              HasSubstr("(not re-executed); not equal to ref.db, first at subnet 4"));
}

TEST(Against, KeepsAnEarlierDifferenceOfTheRecordItself) {
  SampleRun run = MakeSampleRun();
  run.subnets[3].accesses.back().read_seq = 0;
  run.subnets[7].loss_bits ^= 1;
  Seal(run);
  SampleRun reference = run;
  reference.subnets[7].loss_bits ^= 1;
  Seal(reference);
  const Verdict verdict = VerifyAgainst(run, reference);
  EXPECT_EQ(verdict.first_difference->seq, 3);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSchedule);
}

TEST(Against, SaysFirstThatTheEnvironmentsDiffer) {
  SampleRun reference = MakeSampleRun();
  reference.environment[0].value = "Other CPU";
  const std::string text = RenderText(VerifyAgainst(MakeSampleRun(), reference));
  EXPECT_THAT(text, HasSubstr("The environments differ:\n  cpu.model: record Sample CPU, "
                              "reference Other CPU\n"));
}

TEST(Against, RefusesADamagedReference) {
  const SampleRun run = MakeSampleRun();
  SampleRun reference = run;
  reference.subnets[5].loss_bits ^= 1;  // not sealed
  const SampleReader reader(run);
  const SampleReader reference_reader(reference);
  Verdict verdict = ExamineRecord(reader, "run.db");
  const Status status = CompareAgainst(reader, reference_reader, "ref.db", {}, verdict);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("ref.db is damaged: "), HasSubstr("subnet 5: ")));
}

}  // namespace
}  // namespace verbatim
