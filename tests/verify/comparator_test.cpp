// Proves that a re-execution equal to the record is found equal, and that each kind of difference
// is classed, placed and ordered by cause.
#include "verify/comparator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/verify/sample_run.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

/// Plays `here` into a comparator as a re-execution would.
void Play(const SampleRun& here, Comparator& comparator) {
  if (!comparator.OnEnvironment(here.environment)) return;
  comparator.OnDataset(here.run.dataset_digest);
  comparator.OnLayers(here.layers);
  for (const SubnetRow& subnet : here.subnets) {
    if (!comparator.OnSubnet(subnet)) return;
  }
  comparator.OnEvaluations(here.evaluations);
}

/// What a re-execution that gives `here` finds of `recorded`.
std::optional<Difference> Compare(const SampleRun& recorded, const SampleRun& here) {
  const SampleReader reader(recorded);
  auto comparator = Comparator::Create(reader, "run.db", {.any_environment = true});
  VERBATIM_CHECK(comparator.has_value(), "{}", comparator.error().message);
  Play(here, *comparator);
  VERBATIM_CHECK(comparator->status().has_value(), "{}", comparator->status().error().message);
  return comparator->difference();
}

TEST(Comparator, FindsAnEqualRunEqual) {
  for (const char* level : {"losses", "weights", "full"}) {
    const SampleRun sample = MakeSampleRun(level);
    const SampleReader reader(sample);
    std::int64_t told = 0;
    auto comparator =
        Comparator::Create(reader, "run.db", {.progress = [&](std::int64_t done) { told = done; }});
    ASSERT_TRUE(comparator.has_value());
    Play(sample, *comparator);
    EXPECT_FALSE(comparator->difference().has_value()) << level;
    EXPECT_EQ(comparator->subnets_equal(), kSampleSubnets);
    EXPECT_EQ(told, kSampleSubnets);
    Verdict verdict = ExamineRecord(reader, "run.db");
    comparator->AddTo(verdict);
    EXPECT_EQ(verdict.exit_code(), 0);
    EXPECT_EQ(verdict.counts.subnets_reexecuted, kSampleSubnets);
    EXPECT_EQ(verdict.checks.back().outcome, Outcome::kPassed);
  }
}

struct Case {
  const char* name;
  std::function<void(SampleRun&)> change;  ///< of the record
  DifferenceClass kind;
  std::optional<std::int64_t> seq;
  const char* layer;  ///< name, or ""
  std::optional<Phase> phase;
  const char* what;
  const char* level = "weights";
};

class ComparatorDifference : public testing::TestWithParam<Case> {};

TEST_P(ComparatorDifference, IsClassedAndPlaced) {
  const Case& expected = GetParam();
  const SampleRun here = MakeSampleRun(expected.level);
  SampleRun recorded = here;
  expected.change(recorded);
  const auto difference = Compare(recorded, here);
  ASSERT_TRUE(difference.has_value());
  EXPECT_STREQ(ToString(difference->kind), ToString(expected.kind));
  EXPECT_EQ(difference->seq, expected.seq);
  EXPECT_EQ(difference->layer_name, expected.layer);
  EXPECT_EQ(difference->phase, expected.phase);
  EXPECT_EQ(difference->what, expected.what);
  EXPECT_NE(difference->recorded, difference->expected);
  EXPECT_FALSE(difference->cause.empty());
  EXPECT_THAT(difference->next_command, HasSubstr("run.db"));
}

AccessRow& Last(SampleRun& sample, std::int64_t seq) {
  return sample.subnets[static_cast<std::size_t>(seq)].accesses.back();
}

INSTANTIATE_TEST_SUITE_P(
    Classes, ComparatorDifference,
    testing::Values(
        Case{"DataSet",
             [](SampleRun& s) { s.run.dataset_digest = MakeDigest(77); },
             DifferenceClass::kBatchBytes,
             {},
             "",
             {},
             "data set"},
        Case{"InitialWeights",
             [](SampleRun& s) { s.layers[2].initial_digest = MakeDigest(77); },
             DifferenceClass::kInitialWeights,
             {},
             "block0.1",
             {},
             "initial weights"},
        Case{"Layer",
             [](SampleRun& s) { s.layers[2].op = "conv k9"; },
             DifferenceClass::kSpec,
             {},
             "block0.1",
             {},
             "layer"},
        Case{"Choices",
             [](SampleRun& s) {
               auto& choice = s.subnets[3].choices[1];
               choice = choice == 0 ? 1 : 0;
             },
             DifferenceClass::kSpec,
             3,
             "block1.1",
             {},
             "choices"},
        Case{"Samples",
             [](SampleRun& s) { std::swap(s.subnets[3].samples[0], s.subnets[3].samples[1]); },
             DifferenceClass::kSampleOrder,
             3,
             "",
             {},
             "samples"},
        Case{"Batch",
             [](SampleRun& s) { s.subnets[3].batch_digest = MakeDigest(77); },
             DifferenceClass::kBatchBytes,
             3,
             "",
             {},
             "batch"},
        Case{"Read", [](SampleRun& s) { Last(s, 3).read_seq = 1; }, DifferenceClass::kSchedule, 3,
             "head", Phase::kForward, "version read"},
        Case{"Base", [](SampleRun& s) { Last(s, 3).base_seq = 1; }, DifferenceClass::kSchedule, 3,
             "head", Phase::kUpdate, "version updated"},
        Case{"Activation",
             [](SampleRun& s) { s.subnets[3].activations[4].digest = MakeDigest(77); },
             DifferenceClass::kComputation, 3, "head", Phase::kForward,
             "activation of micro-batch 0", "full"},
        Case{"Loss", [](SampleRun& s) { s.subnets[3].loss_bits ^= 1; },
             DifferenceClass::kComputation, 3, "", Phase::kForward, "loss"},
        Case{"Gradients", [](SampleRun& s) { Last(s, 3).gradients = MakeDigest(77); },
             DifferenceClass::kComputation, 3, "head", Phase::kBackward, "gradients", "full"},
        Case{"Weights", [](SampleRun& s) { Last(s, 3).weights = MakeDigest(77); },
             DifferenceClass::kComputation, 3, "head", Phase::kUpdate, "weights"},
        Case{"OptimizerState", [](SampleRun& s) { Last(s, 3).optimizer_state = MakeDigest(77); },
             DifferenceClass::kComputation, 3, "head", Phase::kUpdate, "optimizer state"},
        Case{"Evaluation",
             [](SampleRun& s) { s.evaluations[1].correct = 5; },
             DifferenceClass::kComputation,
             {},
             "",
             Phase::kForward,
             "evaluation 1"}),
    [](const auto& test) { return test.param.name; });

TEST(Comparator, ReportsTheCauseBeforeItsConsequences) {
  const SampleRun here = MakeSampleRun("full");
  SampleRun recorded = here;
  SubnetRow& subnet = recorded.subnets[3];
  // A stale read makes everything after it differ; it must be what is reported.
  subnet.accesses.front().read_seq = 0;
  subnet.loss_bits ^= 1;
  for (AccessRow& access : subnet.accesses) access.weights = MakeDigest(77);
  for (ActivationRow& activation : subnet.activations) activation.digest = MakeDigest(77);
  EXPECT_EQ(Compare(recorded, here)->what, "version read");
}

TEST(Comparator, FollowsTheBackwardPassFromTheHead) {
  const SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  for (AccessRow& access : recorded.subnets[3].accesses) access.weights = MakeDigest(77);
  EXPECT_EQ(Compare(recorded, here)->layer_name, "head");
}

TEST(Comparator, StopsAtTheFirstSubnetThatDiffers) {
  const SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  recorded.subnets[4].loss_bits ^= 1;
  recorded.subnets[7].loss_bits ^= 1;
  const SampleReader reader(recorded);
  auto comparator = Comparator::Create(reader, "run.db", {});
  ASSERT_TRUE(comparator.has_value());
  Play(here, *comparator);
  EXPECT_EQ(comparator->subnets_equal(), 4);
  EXPECT_EQ(comparator->difference()->seq, 4);
  EXPECT_FALSE(comparator->OnSubnet(here.subnets[5]));
}

TEST(Comparator, ShowsALossAsNumberAndBits) {
  const SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  recorded.subnets[3].loss_bits = 0x3dcccccd;
  EXPECT_EQ(Compare(recorded, here)->recorded, "0.100000001 (bits 0x3dcccccd)");
}

TEST(Comparator, BlamesTheEnvironmentForNumbersWhereItDiffers) {
  SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  here.environment[0].value = "Other CPU";
  recorded.subnets[3].loss_bits ^= 1;
  const auto difference = Compare(recorded, here);
  EXPECT_EQ(difference->kind, DifferenceClass::kEnvironment);
  EXPECT_THAT(difference->cause, HasSubstr("cpu.model"));
}

TEST(Comparator, DoesNotBlameTheEnvironmentForTheSchedule) {
  SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  here.environment[0].value = "Other CPU";
  Last(recorded, 3).read_seq = 0;
  EXPECT_EQ(Compare(recorded, here)->kind, DifferenceClass::kSchedule);
}

TEST(Comparator, DoesNotBlameWhatChangesNoNumbers) {
  SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  here.environment[1].value = "another host";
  recorded.subnets[3].loss_bits ^= 1;
  EXPECT_EQ(Compare(recorded, here)->kind, DifferenceClass::kComputation);
}

TEST(Comparator, TakesAnotherEnvironmentAloneForNoDifference) {
  SampleRun here = MakeSampleRun();
  const SampleRun recorded = here;
  here.environment[0].value = "Other CPU";
  EXPECT_FALSE(Compare(recorded, here).has_value());
}

TEST(Comparator, RefusesAnotherEnvironmentUnlessAsked) {
  SampleRun here = MakeSampleRun();
  const SampleRun recorded = here;
  here.environment[0].value = "Other CPU";
  const SampleReader reader(recorded);
  auto comparator = Comparator::Create(reader, "run.db", {});
  ASSERT_TRUE(comparator.has_value());
  Play(here, *comparator);
  ASSERT_FALSE(comparator->status().has_value());
  EXPECT_EQ(comparator->status().error().kind, ErrorKind::kFailed);
  EXPECT_THAT(comparator->status().error().message, HasSubstr("Other CPU"));
  EXPECT_EQ(comparator->subnets_equal(), 0);
}

TEST(Comparator, ReportsARecordThatCannotBeReadOn) {
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetUnreadableFrom(2);
  auto comparator = Comparator::Create(reader, "run.db", {});
  ASSERT_TRUE(comparator.has_value());
  Play(sample, *comparator);
  ASSERT_FALSE(comparator->status().has_value());
  EXPECT_EQ(comparator->status().error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(comparator->subnets_equal(), 2);
}

TEST(Comparator, BlamesABrokenScheduleForWhatItMayHaveChangedBefore) {
  const SampleRun here = MakeSampleRun();
  for (const auto& [in_flight, kind] :
       {std::pair(4, DifferenceClass::kSchedule), std::pair(3, DifferenceClass::kComputation)}) {
    SampleRun recorded = here;
    recorded.run.in_flight = in_flight;
    recorded.subnets[2].loss_bits ^= 1;
    Last(recorded, 6).read_seq = 0;
    Seal(recorded);
    const SampleReader reader(recorded);
    Verdict verdict = ExamineRecord(reader, "run.db");
    auto comparator = Comparator::Create(reader, "run.db", {});
    ASSERT_TRUE(comparator.has_value());
    Play(here, *comparator);
    comparator->AddTo(verdict);
    EXPECT_EQ(verdict.first_difference->seq, 2);
    EXPECT_EQ(verdict.first_difference->kind, kind) << in_flight;
  }
}

TEST(Comparator, KeepsTheEarlierDifferenceInAVerdict) {
  const SampleRun here = MakeSampleRun();
  SampleRun recorded = here;
  recorded.subnets[2].loss_bits ^= 1;
  Last(recorded, 6).read_seq = 0;
  Seal(recorded);
  const SampleReader reader(recorded);
  Verdict verdict = ExamineRecord(reader, "run.db");
  EXPECT_EQ(verdict.first_difference->seq, 6);
  auto comparator = Comparator::Create(reader, "run.db", {});
  ASSERT_TRUE(comparator.has_value());
  Play(here, *comparator);
  comparator->AddTo(verdict);
  EXPECT_EQ(verdict.first_difference->seq, 2);
}

}  // namespace
}  // namespace verbatim
