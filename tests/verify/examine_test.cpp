// Proves what examining a record by itself finds: that a sound record passes, and that damage,
// a broken stream and a broken schedule are each told apart.
#include "verify/examine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/temporary_folder.h"
#include "tests/verify/sample_run.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

const Check& Find(const Verdict& verdict, const std::string& name) {
  for (const Check& check : verdict.checks) {
    if (check.name == name) return check;
  }
  VERBATIM_CHECK(false, "no check {}", name);
}

Verdict ExamineAsIs(const SampleRun& sample) {
  return ExamineRecord(SampleReader(sample), "run.db");
}

/// Of a record that was written with these rows.
Verdict Examine(SampleRun sample) {
  Seal(sample);
  return ExamineAsIs(sample);
}

TEST(Examine, PassesASoundRecordOfEveryLevel) {
  for (const char* level : {"losses", "weights", "full"}) {
    const SampleRun sample = MakeSampleRun(level);
    const Verdict verdict = Examine(sample);
    EXPECT_EQ(verdict.exit_code(), 0) << level;
    EXPECT_EQ(verdict.counts.subnets_audited, kSampleSubnets);
    EXPECT_EQ(verdict.counts.accesses_audited, CountAccesses(sample));
    EXPECT_EQ(verdict.spec_name, "sample");
    for (const Check& check : verdict.checks) {
      const bool is_reexecution = check.name == kCheckReexecution;
      EXPECT_EQ(check.outcome, is_reexecution ? Outcome::kNotRun : Outcome::kPassed) << check.name;
      EXPECT_TRUE(check.problems.empty()) << check.problems.front();
    }
  }
}

struct DamageCase {
  const char* name;
  std::function<void(SampleRun&)> damage;
  const char* check;
  const char* problem;
  const char* level = "weights";
};

class ExamineDamage : public testing::TestWithParam<DamageCase> {};

TEST_P(ExamineDamage, IsNamedAndGivesExitCode3) {
  SampleRun sample = MakeSampleRun(GetParam().level);
  GetParam().damage(sample);
  const Verdict verdict = ExamineAsIs(sample);
  EXPECT_TRUE(verdict.damaged);
  EXPECT_EQ(verdict.exit_code(), 3);
  const Check& check = Find(verdict, GetParam().check);
  EXPECT_EQ(check.outcome, Outcome::kFailed);
  ASSERT_FALSE(check.problems.empty());
  EXPECT_THAT(check.problems.front(), HasSubstr(GetParam().problem));
}

TEST_P(ExamineDamage, IsNamedThoughDigestsAgree) {
  SampleRun sample = MakeSampleRun(GetParam().level);
  GetParam().damage(sample);
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_THAT(Find(verdict, GetParam().check).problems.front(), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ExamineDamage,
    testing::Values(
        DamageCase{"Policy", [](SampleRun& s) { s.run.policy = "lucky"; }, kCheckRun,
                   "unknown policy 'lucky'"},
        DamageCase{"Level", [](SampleRun& s) { s.run.record_level = "some"; }, kCheckRun,
                   "unknown record level 'some'"},
        DamageCase{"Stages", [](SampleRun& s) { s.run.stages = 0; }, kCheckRun, "0 stages"},
        DamageCase{"NoEnd", [](SampleRun& s) { s.run.ended_utc.clear(); }, kCheckRun,
                   "ended, but at no time"},
        DamageCase{"Spec", [](SampleRun& s) { s.run.spec_json = "{"; }, kCheckRun,
                   "the recorded spec"},
        DamageCase{"LayerMissing", [](SampleRun& s) { s.layers.erase(s.layers.begin() + 2); },
                   kCheckLayers, "layer 2 has no row"},
        DamageCase{"LayerName", [](SampleRun& s) { s.layers[3].name = "blockX"; }, kCheckLayers,
                   "layer 3 is called 'blockX', not 'block0.2'"},
        DamageCase{"LayerVersioned", [](SampleRun& s) { s.layers[3].versioned = true; },
                   kCheckLayers, "is versioned, but should not be"},
        DamageCase{"SpecWithMorePositions",
                   [](SampleRun& s) {
                     const std::string repeat = "\"repeat\":3";
                     s.run.spec_json.replace(s.run.spec_json.find(repeat), repeat.size(),
                                             "\"repeat\":1048576");
                   },
                   kCheckLayers, "the layers have 5 positions, the spec has 1048578"},
        DamageCase{"LayerOperator", [](SampleRun& s) { s.layers[1].op = "conv k3"; }, kCheckLayers,
                   "layer 1 is 'conv k3'"},
        DamageCase{"SubnetMissing", [](SampleRun& s) { s.subnets.erase(s.subnets.begin() + 5); },
                   kCheckSubnets, "subnet 5 is missing"},
        DamageCase{"TailMissing", [](SampleRun& s) { s.subnets.resize(9); }, kCheckSubnets,
                   "said to be complete, but 9 of 12"},
        DamageCase{"TooMany", [](SampleRun& s) { s.run.subnets_planned = 11; }, kCheckSubnets,
                   "subnet 11 lies beyond the 11 that were planned"},
        DamageCase{"PlanCutWithTheTail",
                   [](SampleRun& s) {
                     s.subnets.resize(9);
                     s.run.subnets_planned = 9;
                   },
                   kCheckSubnets, "9 subnets are said to be planned, the spec has 12"},
        DamageCase{"ChoiceOutOfRange", [](SampleRun& s) { s.subnets[4].choices[1] = 3; },
                   kCheckSubnets, "subnet 4 chooses candidate 3 of block 1, which has 3"},
        DamageCase{"ChoicesShort", [](SampleRun& s) { s.subnets[4].choices.pop_back(); },
                   kCheckSubnets, "subnet 4 has 2 choices for 3 blocks"},
        DamageCase{"Samples", [](SampleRun& s) { s.subnets[4].samples.pop_back(); }, kCheckSubnets,
                   "subnet 4 has 3 samples, the spec's batch is 4"},
        DamageCase{"AccessMissing",
                   [](SampleRun& s) { s.subnets[4].accesses.erase(s.subnets[4].accesses.begin()); },
                   kCheckSubnets, "subnet 4 has no access of stem, which it uses"},
        DamageCase{"LastAccessMissing", [](SampleRun& s) { s.subnets[4].accesses.pop_back(); },
                   kCheckSubnets, "subnet 4 has no access of head, which it uses"},
        DamageCase{"AccessTwice",
                   [](SampleRun& s) {
                     auto& accesses = s.subnets[4].accesses;
                     accesses.insert(accesses.begin(), accesses.front());
                   },
                   kCheckSubnets, "subnet 4 has two accesses of stem"},
        DamageCase{"AccessOfUnchosen",
                   [](SampleRun& s) {
                     auto& subnet = s.subnets[4];
                     AccessRow access = subnet.accesses.front();
                     access.layer = 3;  // block0.2: without parameters, so never written
                     const auto place =
                         std::find_if(subnet.accesses.begin(), subnet.accesses.end(),
                                      [](const AccessRow& other) { return other.layer > 3; });
                     subnet.accesses.insert(place, access);
                   },
                   kCheckSubnets, "subnet 4 has an access of block0.2, which it does not use"},
        DamageCase{"Stage", [](SampleRun& s) { s.subnets[4].accesses[0].stage = 2; }, kCheckSubnets,
                   "on stage 2 of 2"},
        DamageCase{"Version", [](SampleRun& s) { s.subnets[4].accesses[0].read_seq = 12; },
                   kCheckSubnets, "read version 12, which cannot exist"},
        DamageCase{"BaseVersion", [](SampleRun& s) { s.subnets[4].accesses[0].base_seq = -2; },
                   kCheckSubnets, "updated version -2, which cannot exist"},
        DamageCase{"DigestMissing", [](SampleRun& s) { s.subnets[4].accesses[0].weights.reset(); },
                   kCheckSubnets, "whose digests are not those of level weights"},
        DamageCase{"DigestTooMany",
                   [](SampleRun& s) { s.subnets[4].accesses[0].gradients = MakeDigest(1); },
                   kCheckSubnets, "whose digests are not those of level weights"},
        DamageCase{"ActivationMissing", [](SampleRun& s) { s.subnets[4].activations.pop_back(); },
                   kCheckSubnets, "has 9 activations where level full has 10", "full"},
        DamageCase{"ActivationTwice",
                   [](SampleRun& s) { s.subnets[4].activations[1] = s.subnets[4].activations[0]; },
                   kCheckSubnets, "has 10 activations, of which some are there twice", "full"},
        DamageCase{"ActivationElsewhere",
                   [](SampleRun& s) { s.subnets[4].activations[0].position = 9; }, kCheckSubnets,
                   "position 9, which do not exist", "full"},
        DamageCase{"EvaluationMissing", [](SampleRun& s) { s.evaluations.pop_back(); },
                   kCheckEvaluations, "1 recorded, the spec has 2"},
        DamageCase{"EvaluationCount", [](SampleRun& s) { s.evaluations[0].correct = 101; },
                   kCheckEvaluations, "counts 101 of 100"}),
    [](const auto& test) { return test.param.name; });

struct EditCase {
  const char* name;
  std::function<void(SubnetRow&)> edit;
  const char* level = "weights";
};

class ExamineEdit : public testing::TestWithParam<EditCase> {};

TEST_P(ExamineEdit, IsFoundWithoutExecution) {
  SampleRun sample = MakeSampleRun(GetParam().level);
  ASSERT_EQ(ExamineAsIs(sample).exit_code(), 0);
  GetParam().edit(sample.subnets[5]);
  const Verdict verdict = ExamineAsIs(sample);
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_EQ(verdict.first_damaged_subnet, 5);
  EXPECT_EQ(verdict.counts.subnets_audited, 5);
  const Check& check = Find(verdict, kCheckSubnets);
  ASSERT_EQ(check.problem_count, 1);
  EXPECT_THAT(check.problems.front(),
              testing::MatchesRegex("subnet 5: its row was changed after it was written "
                                    "\\(leaf [0-9a-f]{8}, recorded [0-9a-f]{8}\\)"));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ExamineEdit,
    testing::Values(
        EditCase{"Samples", [](SubnetRow& s) { std::swap(s.samples[0], s.samples[1]); }},
        EditCase{"Batch", [](SubnetRow& s) { s.batch_digest.bytes[15] ^= 1; }},
        EditCase{"Loss", [](SubnetRow& s) { s.loss_bits ^= 1; }},
        EditCase{"ReadVersion", [](SubnetRow& s) { s.accesses[0].read_seq = 2; }},
        EditCase{"BaseVersion", [](SubnetRow& s) { s.accesses[0].base_seq = 2; }},
        EditCase{"Weights", [](SubnetRow& s) { s.accesses[0].weights->bytes[0] ^= 0x80; }},
        EditCase{"OptimizerState",
                 [](SubnetRow& s) { s.accesses[0].optimizer_state->bytes[7] ^= 1; }},
        EditCase{"Gradients", [](SubnetRow& s) { s.accesses[0].gradients->bytes[7] ^= 1; }, "full"},
        EditCase{"Activation", [](SubnetRow& s) { s.activations[3].digest.bytes[7] ^= 1; }, "full"},
        EditCase{"ItsLeaf", [](SubnetRow& s) { s.content_leaf.bytes[3] ^= 1; }}),
    [](const auto& test) { return test.param.name; });

TEST(Examine, FindsWhereASubnetRanChanged) {
  SampleRun sample = MakeSampleRun();
  sample.subnets[5].accesses[0].stage = 1;
  const Verdict verdict = ExamineAsIs(sample);
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_THAT(Find(verdict, kCheckSubnets).problems,
              testing::ElementsAre(testing::HasSubstr(
                  "subnet 5: its stages or times were changed after they were written")));
}

TEST(Examine, NamesTheFirstDamagedSubnet) {
  EXPECT_FALSE(Examine(MakeSampleRun()).first_damaged_subnet.has_value());
  SampleRun gap = MakeSampleRun();
  gap.subnets[9].samples.clear();
  gap.subnets.erase(gap.subnets.begin() + 4);
  EXPECT_EQ(Examine(gap).first_damaged_subnet, 4);
  SampleRun cut = MakeSampleRun();
  cut.subnets.resize(9);
  EXPECT_EQ(Examine(cut).first_damaged_subnet, 9);
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetUnreadableFrom(7);
  EXPECT_EQ(ExamineRecord(reader, "run.db").first_damaged_subnet, 7);
}

TEST(Examine, ReportsWhatSqliteFinds) {
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetIntegrityProblems({"row 3 missing from index"});
  const Verdict verdict = ExamineRecord(reader, "run.db");
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_EQ(Find(verdict, kCheckFile).problems.front(), "row 3 missing from index");
}

TEST(Examine, AuditsUpToWhatCannotBeRead) {
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetUnreadableFrom(7);
  const Verdict verdict = ExamineRecord(reader, "run.db");
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_EQ(verdict.counts.subnets_audited, 7);
  EXPECT_THAT(Find(verdict, kCheckSubnets).problems.front(), HasSubstr("unreadable"));
}

TEST(Examine, ListsWhatDamageKeptFromRunning) {
  SampleRun sample = MakeSampleRun();
  sample.run.spec_json = "";
  const Verdict verdict = Examine(sample);
  for (const char* name : {kCheckLayers, kCheckSubnets, kCheckStream, kCheckCausality}) {
    EXPECT_EQ(Find(verdict, name).outcome, Outcome::kNotRun) << name;
  }
}

TEST(Examine, ShowsTheFirstProblemsAndCountsAll) {
  SampleRun sample = MakeSampleRun();
  for (SubnetRow& subnet : sample.subnets) subnet.samples.clear();
  const Check check = Find(Examine(sample), kCheckSubnets);
  EXPECT_EQ(check.problems.size(), kProblemsShown);
  EXPECT_EQ(check.problem_count, kSampleSubnets);
}

TEST(Examine, FindsABrokenSchedule) {
  SampleRun sample = MakeSampleRun();
  sample.run.policy = "asynchronous";
  sample.subnets[9].accesses[0].read_seq = 6;
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.counts.violations, 1);
  ASSERT_TRUE(verdict.first_difference.has_value());
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSchedule);
  EXPECT_EQ(verdict.first_difference->seq, 9);
  EXPECT_EQ(verdict.first_difference->layer_name, "stem");
  EXPECT_EQ(verdict.first_difference->recorded, "version 6");
  EXPECT_EQ(verdict.first_difference->expected, "version 8");
  EXPECT_EQ(verdict.first_difference->next_command, "verbatim show run.db --layer stem");
  EXPECT_EQ(Find(verdict, kCheckCausality).problems.front(),
            "subnet 9 read stem at version 6 on stage 0; its causal predecessor is subnet 8");
}

TEST(Examine, FindsChoicesThatTheSamplerDoesNotDraw) {
  SampleRun sample = MakeSampleRun();
  sample.run.spec_json.replace(sample.run.spec_json.find("\"seed\":7"), 8, "\"seed\":8");
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 1);
  ASSERT_TRUE(verdict.first_difference.has_value());
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
  EXPECT_EQ(Find(verdict, kCheckStream).outcome, Outcome::kFailed);
}

TEST(Examine, FindsEvaluationsThatTheSeedDoesNotDraw) {
  SampleRun sample = MakeSampleRun();
  auto& choice = sample.evaluations[1].choices[0];
  choice = (choice + 1) % 3;
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.first_difference->what, "choices of evaluation 1");
}

class ExamineList : public testing::Test {
 protected:
  ExamineList() {
    sample_.run.spec_folder = folder_;
    const std::string uniform = "\"sampler\":{\"kind\":\"uniform\"}";
    const auto place = sample_.run.spec_json.find(uniform);
    VERBATIM_CHECK(place != std::string::npos, "{}", sample_.run.spec_json);
    sample_.run.spec_json.replace(place, uniform.size(),
                                  R"("sampler":{"file":"list.jsonl","kind":"list"})");
    WriteList();
  }

  void WriteList() const {
    std::ofstream file(folder_ + "/list.jsonl");
    for (const SubnetRow& row : sample_.subnets) {
      file << '[' << row.choices[0] << ',' << row.choices[1] << ',' << row.choices[2] << "]\n";
    }
  }

  const test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path().string();
  SampleRun sample_ = MakeSampleRun();
};

TEST_F(ExamineList, ComparesWithTheListFile) {
  const Verdict verdict = Examine(sample_);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(Find(verdict, kCheckStream).detail, "12 subnets chose what list.jsonl lists");
}

TEST_F(ExamineList, ComparesWithTheListFileReordered) {
  const std::string list = R"("sampler":{"file":"list.jsonl","kind":"list"})";
  const auto place = sample_.run.spec_json.find(list);
  sample_.run.spec_json.replace(
      place, list.size(),
      R"("sampler":{"kind":"reorder","of":{"kind":"list","file":"list.jsonl"},"window":1})");
  const Verdict same = Examine(sample_);  // a window of one leaves the order
  EXPECT_EQ(Find(same, kCheckStream).detail,
            "12 subnets chose what sampler reorder makes of what list.jsonl lists");
  EXPECT_EQ(same.exit_code(), 0);
  sample_.run.spec_json.replace(sample_.run.spec_json.find("\"window\":1"), 10, "\"window\":9");
  EXPECT_EQ(Find(Examine(sample_), kCheckStream).outcome, Outcome::kFailed);
}

TEST_F(ExamineList, FindsAnEditedListFile) {
  const auto saved = sample_.subnets;
  sample_.subnets[5].choices[2] = (saved[5].choices[2] + 1) % 3;
  WriteList();
  sample_.subnets = saved;
  const Verdict verdict = Examine(sample_);
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.first_difference->seq, 5);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
}

TEST_F(ExamineList, SaysThatTheListFileIsGone) {
  std::filesystem::remove(folder_ + "/list.jsonl");
  const Verdict verdict = Examine(sample_);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(Find(verdict, kCheckStream).outcome, Outcome::kNotRun);
  EXPECT_THAT(Find(verdict, kCheckStream).detail,
              HasSubstr("list.jsonl: the list of subnets cannot be read"));
}

TEST(Examine, DrawsAFairStreamAgain) {
  SampleRun sample = MakeSampleRun();
  const std::string uniform = "\"kind\":\"uniform\"";
  sample.run.spec_json.replace(sample.run.spec_json.find(uniform), uniform.size(),
                               "\"kind\":\"fair\"");
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kSpec);
  EXPECT_THAT(Find(verdict, kCheckStream).detail,
              HasSubstr("did not choose what sampler fair draws with seed 7"));
}

TEST(Examine, AuditsReadsAgainstTheDelaysOfTheSpec) {
  SampleRun sample = MakeSampleRun();
  const std::string head = "\"head\":{\"delay\":0";
  sample.run.spec_json.replace(sample.run.spec_json.find(head), head.size(),
                               "\"head\":{\"delay\":3");
  const Verdict early = Examine(sample);
  EXPECT_EQ(early.exit_code(), 1);
  EXPECT_EQ(early.counts.violations, 11);  // all but the first, which reads the initial weights
  EXPECT_EQ(early.first_difference->cause,
            "subnet 1 read head at version 0 on stage 1; with delay 3 it has no read predecessor");
  for (SubnetRow& row : sample.subnets) {
    row.accesses.back().read_seq = std::max<std::int64_t>(row.seq - 4, -1);
  }
  Seal(sample);
  const Verdict late = Examine(sample);
  EXPECT_EQ(late.exit_code(), 0) << RenderText(late);
  EXPECT_THAT(Find(late, kCheckCausality).detail, HasSubstr("as late as the delays say"));
}

TEST(Examine, AcceptsTheWholePrefixOfAnInterruptedRun) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kInterrupted;
  sample.subnets.resize(5);
  sample.evaluations.clear();
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(verdict.counts.subnets_audited, 5);
}

TEST(Examine, AuditsARunningRecordUpToItsFirstGap) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kRunning;
  sample.run.ended_utc.clear();
  sample.evaluations.clear();
  sample.subnets.erase(sample.subnets.begin() + 8);
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(verdict.counts.subnets, 11);
  EXPECT_EQ(verdict.counts.subnets_audited, 8);
  EXPECT_THAT(Find(verdict, kCheckCausality).detail,
              HasSubstr("only the first 8 subnets were audited: subnet 8 is missing"));
}

TEST(Examine, RefusesAGapInAnInterruptedRun) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kInterrupted;
  sample.evaluations.clear();
  sample.subnets.erase(sample.subnets.begin() + 8, sample.subnets.begin() + 10);
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_EQ(Find(verdict, kCheckSubnets).problems.front(), "subnets 8 … 9 are missing");
}

TEST(Examine, MentionsLossesThatAreNan) {
  SampleRun sample = MakeSampleRun();
  sample.subnets[3].loss_bits = 0x7fc00000;
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_THAT(Find(verdict, kCheckSubnets).detail, HasSubstr("1 loss is NaN"));
}

}  // namespace
}  // namespace verbatim
