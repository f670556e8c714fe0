// Proves what comparing two records says: that equal runs are equal whatever their layout, and
// where and why others part.
#include "verify/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_run.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Verdict Diff(const SampleRun& a, const SampleRun& b) {
  const SampleReader of_a(a), of_b(b);
  const auto verdict = CompareRecords(of_a, "a.db", of_b, "b.db");
  VERBATIM_CHECK(verdict.has_value(), "{}", verdict.error().message);
  return *verdict;
}

/// Of records that were written with these rows.
Verdict DiffSealed(SampleRun a, SampleRun b) {
  Seal(a);
  Seal(b);
  return Diff(a, b);
}

const Check& Find(const Verdict& verdict, const std::string& name) {
  for (const Check& check : verdict.checks) {
    if (check.name == name) return check;
  }
  VERBATIM_CHECK(false, "no check {}", name);
}

void EditSpec(SampleRun& sample, const std::string& from, const std::string& to) {
  const auto place = sample.run.spec_json.find(from);
  VERBATIM_CHECK(place != std::string::npos, "no {} in {}", from, sample.run.spec_json);
  sample.run.spec_json.replace(place, from.size(), to);
}

TEST(CompareRecords, FindsEqualRunsEqualOnAnyLayoutAndLevel) {
  for (const char* level : {"losses", "weights", "full"}) {
    const SampleRun a = MakeSampleRun(level);
    SampleRun b = MakeSampleRun("full");
    b.run.stages = 3;
    b.run.in_flight = 7;
    b.run.device = "cuda:1";
    const Verdict verdict = Diff(a, b);
    EXPECT_EQ(verdict.exit_code(), 0) << Summary(verdict);
    EXPECT_EQ(verdict.kind, VerdictKind::kDiff);
    EXPECT_EQ(verdict.record, "a.db");
    EXPECT_EQ(verdict.reference, "b.db");
    EXPECT_STREQ(VerdictWord(verdict), "equal");
    ASSERT_TRUE(verdict.comparison.has_value());
    EXPECT_EQ(verdict.comparison->subnets_equal, kSampleSubnets);
    EXPECT_EQ(verdict.layout_differences.size(), std::string(level) == "full" ? 3U : 4U);
    for (const Check& check : verdict.checks) EXPECT_EQ(check.outcome, Outcome::kPassed);
  }
}

struct Case {
  const char* name;
  std::function<void(SampleRun&)> change;  ///< of A
  DifferenceClass kind;
  std::optional<std::int64_t> seq;
  const char* layer;
  const char* what;
  std::int64_t origins;
};

class DiffDifference : public testing::TestWithParam<Case> {};

TEST_P(DiffDifference, IsClassedAndPlacedFromEitherSide) {
  const Case& expected = GetParam();
  const SampleRun b = MakeSampleRun();
  SampleRun a = b;
  expected.change(a);
  for (const bool swapped : {false, true}) {
    const Verdict verdict = swapped ? DiffSealed(b, a) : DiffSealed(a, b);
    EXPECT_EQ(verdict.exit_code(), 1);
    ASSERT_TRUE(verdict.first_difference.has_value());
    const Difference& first = *verdict.first_difference;
    EXPECT_STREQ(ToString(first.kind), ToString(expected.kind));
    EXPECT_EQ(first.seq, expected.seq);
    EXPECT_EQ(first.layer_name, expected.layer);
    EXPECT_EQ(first.what, expected.what);
    EXPECT_NE(first.recorded, first.expected);
    EXPECT_FALSE(first.cause.empty());
    EXPECT_THAT(first.next_command, HasSubstr(".db"));
    EXPECT_EQ(verdict.comparison->origin_count, expected.origins);
    EXPECT_THAT(RenderText(verdict), HasSubstr("  A         " + first.recorded + "\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Classes, DiffDifference,
    testing::Values(
        Case{"DataSet", [](SampleRun& s) { s.run.dataset_digest = MakeDigest(77); },
             DifferenceClass::kBatchBytes, std::nullopt, "", "data set", 0},
        Case{"InitialWeights", [](SampleRun& s) { s.layers[2].initial_digest = MakeDigest(77); },
             DifferenceClass::kInitialWeights, std::nullopt, "block0.1", "initial weights", 1},
        Case{"Samples",
             [](SampleRun& s) { std::swap(s.subnets[3].samples[0], s.subnets[3].samples[1]); },
             DifferenceClass::kSampleOrder, 3, "", "samples", 1},
        Case{"Batch", [](SampleRun& s) { s.subnets[3].batch_digest = MakeDigest(77); },
             DifferenceClass::kBatchBytes, 3, "", "batch", 1},
        Case{"Loss",
             [](SampleRun& s) {
               for (const std::size_t seq : {3, 4}) {
                 s.subnets[seq].loss_bits ^= 1;
                 for (AccessRow& access : s.subnets[seq].accesses) access.weights->bytes[0] ^= 1;
               }
             },
             DifferenceClass::kComputation, 3, "", "loss", 1},
        Case{"Weights", [](SampleRun& s) { s.subnets[3].accesses.back().weights->bytes[0] ^= 1; },
             DifferenceClass::kComputation, 3, "head", "weights", 1},
        Case{"Read", [](SampleRun& s) { s.subnets[3].accesses[0].read_seq = 1; },
             DifferenceClass::kSchedule, 3, "stem", "version read", 1},
        Case{"Evaluation", [](SampleRun& s) { s.evaluations[1].correct = 5; },
             DifferenceClass::kComputation, std::nullopt, "", "evaluation 1", 0}),
    [](const auto& test) { return test.param.name; });

TEST(CompareRecords, SaysWhichRecordIsDamagedAndComparesNothing) {
  const SampleRun sound = MakeSampleRun();
  SampleRun edited = sound;
  edited.subnets[5].loss_bits ^= 1;
  const Verdict second = Diff(sound, edited);
  EXPECT_EQ(second.exit_code(), 3);
  EXPECT_EQ(second.first_damaged_subnet, 5);
  EXPECT_FALSE(second.comparison.has_value());
  EXPECT_EQ(Find(second, kCheckRecordA).outcome, Outcome::kPassed);
  EXPECT_THAT(Find(second, kCheckRecordB).problems.front(), HasSubstr("subnet 5: its row"));
  EXPECT_EQ(Summary(second), "record B is damaged, so nothing was compared");
  EXPECT_EQ(Summary(Diff(edited, sound)), "record A is damaged, so nothing was compared");
  EXPECT_EQ(Summary(Diff(edited, edited)),
            "record A and record B are damaged, so nothing was compared");
}

TEST(CompareRecords, ComparesNothingWhereTheSpecsLayOutOtherLayers) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  EditSpec(b, "\"activation\":\"none\"", "\"activation\":\"relu\"");
  for (LayerRow& layer : b.layers) {
    if (layer.op == a.layers[2].op) layer.op = a.layers[1].op;
  }
  const Verdict verdict = Diff(a, b);
  EXPECT_EQ(verdict.exit_code(), 1) << RenderText(verdict);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
  EXPECT_EQ(verdict.first_difference->what, "layer");
  EXPECT_FALSE(verdict.comparison.has_value());
  EXPECT_EQ(Find(verdict, kDiffSubnets).outcome, Outcome::kNotRun);
  EXPECT_THAT(Summary(verdict), HasSubstr("the specs lay out other layers"));
}

TEST(CompareRecords, BlamesTheSpecWhereItAsksForOtherNumbers) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  EditSpec(b, "\"base\":0.1", "\"base\":0.2");
  b.subnets[0].accesses[0].weights = MakeDigest(77);
  b.environment[0].value = "Other CPU";
  const Verdict verdict = DiffSealed(a, b);
  ASSERT_EQ(verdict.spec_differences.size(), 1U);
  EXPECT_EQ(verdict.spec_differences[0].key, "training.lr.base");
  EXPECT_EQ(verdict.spec_differences[0].a, "0.1");
  EXPECT_EQ(verdict.spec_differences[0].b, "0.2");
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
  EXPECT_THAT(verdict.first_difference->cause, HasSubstr("the specs differ (training.lr.base)"));
}

TEST(CompareRecords, BlamesTheSpecForOtherVersionsWhereItAsksForAnotherDelay) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  EditSpec(b, "\"head\":{\"delay\":0", "\"head\":{\"delay\":2");
  for (SubnetRow& row : b.subnets) {
    row.accesses.back().read_seq = std::max<std::int64_t>(row.seq - 3, -1);
  }
  const Verdict verdict = DiffSealed(a, b);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
  EXPECT_EQ(verdict.first_difference->what, "version read");
  EXPECT_EQ(verdict.first_difference->seq, 1);
  EXPECT_THAT(verdict.first_difference->cause, HasSubstr("the specs differ (supernet.head.delay)"));
  b.subnets[9].accesses.back().read_seq = 8;  // which no spec asks for
  EXPECT_EQ(DiffSealed(a, b).first_difference->kind, DifferenceClass::kSchedule);
}

TEST(CompareRecords, DoesNotBlameWhatASpecSaysOfNoSubnet) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  EditSpec(b, "\"name\":\"sample\"", "\"name\":\"another\"");
  EditSpec(b, "\"folder\":\"data\"", "\"folder\":\"/data\"");
  EXPECT_EQ(Diff(a, b).exit_code(), 0);
  b.subnets[7].loss_bits ^= 1;
  const Verdict verdict = DiffSealed(a, b);
  EXPECT_EQ(verdict.spec_differences.size(), 2U);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kComputation);
}

TEST(CompareRecords, BlamesTheEnvironmentForNumbersWhereItDiffers) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  b.environment[0].value = "Other CPU";
  EXPECT_EQ(Diff(a, b).exit_code(), 0);
  b.subnets[7].loss_bits ^= 1;
  const Verdict verdict = DiffSealed(a, b);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kEnvironment);
  const std::string text = RenderText(verdict);
  EXPECT_LT(text.find("cpu.model: A Sample CPU, B Other CPU"), text.find("First difference"));
}

TEST(CompareRecords, ComparesWhatRunsOfDifferentLengthShare) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  b.run.status = RunStatus::kInterrupted;
  b.subnets.resize(5);
  b.evaluations.clear();
  const Verdict verdict = Diff(a, b);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(verdict.comparison->subnets_compared, 5);
  EXPECT_TRUE(verdict.comparison->is_prefix);
  EXPECT_THAT(Find(verdict, kDiffSubnets).detail, HasSubstr("the first 5 subnets"));
  EXPECT_THAT(Find(verdict, kCheckRecordB).detail, HasSubstr("interrupted after 5 of 12"));
  EXPECT_EQ(Find(verdict, kDiffEvaluations).outcome, Outcome::kNotRun);
  EXPECT_THAT(Summary(verdict), HasSubstr("(a common beginning): equal"));
}

TEST(CompareRecords, ComparesUpToTheFirstGap) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  b.run.status = RunStatus::kRunning;
  b.run.ended_utc.clear();
  b.subnets.erase(b.subnets.begin() + 8);
  b.evaluations.clear();
  b.subnets.back().loss_bits ^= 1;
  EXPECT_EQ(DiffSealed(a, b).comparison->subnets_compared, 8);
}

TEST(CompareRecords, RefusesRecordsWithoutASubnetInCommon) {
  SampleRun empty = MakeSampleRun();
  empty.run.status = RunStatus::kInterrupted;
  empty.subnets.clear();
  empty.evaluations.clear();
  const SampleReader a(empty);
  const SampleRun whole = MakeSampleRun();
  const SampleReader b(whole);
  for (const auto& [left, right] : {std::pair(&a, &a), std::pair(&a, &b), std::pair(&b, &a)}) {
    const auto verdict = CompareRecords(*left, "a.db", *right, "b.db");
    ASSERT_FALSE(verdict.has_value());
    EXPECT_EQ(verdict.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(verdict.error().message, HasSubstr("nothing was compared"));
  }
}

TEST(CompareRecords, BlamesABrokenScheduleForWhatItMayHaveChangedBefore) {
  const SampleRun a = MakeSampleRun();
  SampleRun b = a;
  b.run.policy = "asynchronous";
  b.subnets[5].loss_bits ^= 1;
  b.subnets[7].accesses[0].read_seq = 4;
  const Verdict verdict = DiffSealed(a, b);
  EXPECT_EQ(verdict.first_difference->seq, 5);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSchedule);
  EXPECT_EQ(verdict.first_difference->next_command, "verbatim show b.db --layer stem");
  EXPECT_THAT(Find(verdict, kCheckRecordB).detail, HasSubstr("1 violation of causality"));
}

TEST(CompareRecords, TellsOfItsProgress) {
  const SampleRun sample = MakeSampleRun();
  const SampleReader reader(sample);
  std::int64_t told = 0;
  ASSERT_TRUE(
      CompareRecords(reader, "a.db", reader, "b.db", [&](std::int64_t done) { told = done; }));
  EXPECT_EQ(told, kSampleSubnets);
}

}  // namespace
}  // namespace verbatim
