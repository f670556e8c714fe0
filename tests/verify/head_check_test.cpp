// Proves that a record which was changed, cut, replaced or prolonged in any place that it states no
// longer agrees with a head taken before, although it agrees with itself; and that a run which goes
// on does.
#include "verify/head_check.h"

#include <gmock/gmock.h>

#include "tests/verify/sample_run.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

/// A sample run that may have been resumed.
class ResumedReader : public SampleReader {
 public:
  ResumedReader(const SampleRun& sample, std::vector<ResumptionRow> resumptions)
      : SampleReader(sample), resumptions_(std::move(resumptions)) {}
  Result<std::vector<ResumptionRow>> Resumptions() const override { return resumptions_; }

 private:
  std::vector<ResumptionRow> resumptions_;
};

ResumptionRow Resumption(std::int64_t number) {
  ResumptionRow row;
  row.resumption = number;
  row.tool_version = "0.1.0";
  row.facts_json = "{}";
  return row;
}

/// The first `count` subnets of the sample, of a run that is still running.
SampleRun RunningRun(std::int64_t count = kSampleSubnets) {
  SampleRun run = MakeSampleRun();
  run.subnets.resize(static_cast<std::size_t>(count));
  run.run.status = RunStatus::kRunning;
  run.run.ended_utc.clear();
  run.evaluations.clear();
  return run;
}

KeptHead HeadOf(const RecordReader& reader) {
  const auto head = reader.HeadNow();
  VERBATIM_CHECK(head.has_value());
  return {*head, "run.head"};
}

KeptHead HeadOf(const SampleRun& run, std::vector<ResumptionRow> resumptions = {}) {
  return HeadOf(ResumedReader(run, std::move(resumptions)));
}

std::vector<HeadMismatch> Compare(SampleRun run, const std::vector<KeptHead>& heads,
                                  std::vector<ResumptionRow> resumptions = {},
                                  const std::optional<PublicKey>& key = {}) {
  Seal(run);
  const auto found = CompareWithHeads(ResumedReader(run, std::move(resumptions)), heads, key);
  VERBATIM_CHECK(found.has_value(), "{}", found.error().message);
  return *found;
}

auto Problem(const std::string& part) {
  return ElementsAre(Field(&HeadMismatch::problem, HasSubstr(part)));
}

TEST(HeadCheck, UnchangedRecordAgrees) {
  EXPECT_THAT(Compare(MakeSampleRun(), {HeadOf(MakeSampleRun())}), IsEmpty());
}

TEST(HeadCheck, RunThatWentOnAgreesWithEveryOlderHead) {
  std::vector<KeptHead> heads;
  for (std::int64_t size = 0; size <= kSampleSubnets; ++size) {
    heads.push_back(HeadOf(RunningRun(size)));
  }
  heads.push_back(HeadOf(MakeSampleRun()));
  EXPECT_THAT(Compare(MakeSampleRun(), heads), IsEmpty());
  EXPECT_THAT(Compare(RunningRun(), {heads.begin(), heads.end() - 1}), IsEmpty());
}

TEST(HeadCheck, EveryChangedPartOfARunIsNamed) {
  const KeptHead head = HeadOf(MakeSampleRun());
  const struct {
    const char* problem;
    std::function<void(SampleRun&)> change;
  } cases[] = {
      {"this is another run", [](SampleRun& run) { run.layers[3].initial_digest.bytes[0] ^= 1; }},
      {"this is another run", [](SampleRun& run) { run.layers[3].name += "x"; }},
      {"this is another run", [](SampleRun& run) { run.run.dataset_digest.bytes[5] ^= 1; }},
      {"this is another run", [](SampleRun& run) { run.run.spec_json += " "; }},
      {"content of subnets 0 to 11: changed",
       [](SampleRun& run) { run.subnets[5].accesses[1].weights->bytes[3] ^= 1; }},
      {"content of subnets 0 to 11: changed",
       [](SampleRun& run) { run.subnets[11].loss_bits ^= 1; }},
      {"content of subnets 0 to 11: changed",
       [](SampleRun& run) { std::swap(run.subnets[2].samples, run.subnets[3].samples); }},
      {"stages and times of subnets 0 to 11: changed",
       [](SampleRun& run) { run.subnets[5].accesses[1].stage ^= 1; }},
      {"stages and times of subnets 0 to 11: changed",
       [](SampleRun& run) { run.subnets[5].activities.push_back({}); }},
      {"the record was cut", [](SampleRun& run) { run.subnets.pop_back(); }},
      {"the record was cut", [](SampleRun& run) { run.subnets.erase(run.subnets.begin() + 4); }},
      {"the record was cut", [](SampleRun& run) { run.subnets.clear(); }},
      {"program, command line, layout", [](SampleRun& run) { run.run.command_line += " --x"; }},
      {"program, command line, layout", [](SampleRun& run) { run.run.policy = "gpipe"; }},
      {"program, command line, layout", [](SampleRun& run) { run.run.stages = 3; }},
      {"program, command line, layout", [](SampleRun& run) { run.environment[0].value += "x"; }},
      {"program, command line, layout", [](SampleRun& run) { run.environment.pop_back(); }},
      {"the run's end or its evaluations", [](SampleRun& run) { run.evaluations[0].correct = 99; }},
      {"the run's end or its evaluations", [](SampleRun& run) { run.evaluations.pop_back(); }},
      {"the run's end or its evaluations", [](SampleRun& run) { run.run.status_detail = "x"; }},
      {"the run's end or its evaluations",
       [](SampleRun& run) { run.run.status = RunStatus::kRunning; }},
  };
  for (const auto& test : cases) {
    SampleRun run = MakeSampleRun();
    test.change(run);
    EXPECT_THAT(Compare(run, {head}), Problem(test.problem));
  }
}

TEST(HeadCheck, OlderHeadsNarrowDownWhatWasChanged) {
  const std::vector<KeptHead> heads{HeadOf(RunningRun(4)), HeadOf(RunningRun(8)),
                                    HeadOf(RunningRun(9)), HeadOf(MakeSampleRun())};
  SampleRun run = MakeSampleRun();
  run.subnets[5].loss_bits ^= 1;
  const auto in_middle = Compare(run, heads);
  ASSERT_EQ(in_middle.size(), 3u);
  EXPECT_THAT(in_middle[0].problem, HasSubstr("content of subnets 4 to 7: changed; the 4 "
                                              "subnets before agree with an older head"));
  EXPECT_EQ(in_middle[0].seq, std::nullopt);
  run = MakeSampleRun();
  run.subnets[8].loss_bits ^= 1;
  const auto exact = Compare(run, heads);
  ASSERT_EQ(exact.size(), 2u);
  EXPECT_THAT(exact[0].problem, HasSubstr("content of subnet 8: changed"));
  EXPECT_EQ(exact[0].seq, 8);
}

TEST(HeadCheck, NothingCanBeAddedToARunThatHadEnded) {
  SampleRun ended = MakeSampleRun();
  ended.subnets.pop_back();
  ended.run.status = RunStatus::kInterrupted;
  EXPECT_THAT(Compare(MakeSampleRun(), {HeadOf(ended)}),
              Problem("subnets were added after the run had ended"));
  // Unless it was resumed.
  EXPECT_THAT(Compare(MakeSampleRun(), {HeadOf(ended)}, {Resumption(1)}), IsEmpty());
}

TEST(HeadCheck, ResumptionsStay) {
  const KeptHead head = HeadOf(MakeSampleRun(), {Resumption(1)});
  EXPECT_THAT(Compare(MakeSampleRun(), {head}, {Resumption(1)}), IsEmpty());
  EXPECT_THAT(Compare(MakeSampleRun(), {head}, {Resumption(1), Resumption(2)}), IsEmpty());
  EXPECT_THAT(Compare(MakeSampleRun(), {head}), Problem("resumptions of the run were removed"));
  ResumptionRow changed = Resumption(1);
  changed.command_line = "verbatim resume run.db";
  EXPECT_THAT(Compare(MakeSampleRun(), {head}, {changed}), Problem("a resumption of the run was"));
}

TEST(HeadCheck, KeyIsWantedOfEveryHead) {
  const SecretKey key = GenerateKey();
  const KeptHead bare = HeadOf(MakeSampleRun());
  KeptHead good = bare, other = bare, edited = bare;
  SignHead(key, good.head);
  SignHead(GenerateKey(), other.head);
  edited = good;
  edited.head.created_utc = "2030-01-01T00:00:00Z";
  const std::optional<PublicKey> wanted = PublicKeyOf(key);
  EXPECT_THAT(Compare(MakeSampleRun(), {good}, {}, wanted), IsEmpty());
  EXPECT_THAT(Compare(MakeSampleRun(), {good, bare}, {}, wanted), Problem("it is not signed"));
  EXPECT_THAT(Compare(MakeSampleRun(), {other}, {}, wanted), Problem("signed with another key"));
  EXPECT_THAT(Compare(MakeSampleRun(), {edited}, {}, wanted),
              Problem("its signature does not fit"));
  EXPECT_THAT(Compare(MakeSampleRun(), {bare, other, edited}), IsEmpty());
}

Verdict VerdictWith(SampleRun run, const std::vector<KeptHead>& heads) {
  Seal(run);
  const SampleReader reader(run);
  Verdict verdict = ExamineRecord(reader, "run.db");
  AddHeadCheck(reader, heads, std::nullopt, verdict);
  return verdict;
}

TEST(HeadCheck, VerdictListsItBeforeTheReexecution) {
  const Verdict verdict = VerdictWith(MakeSampleRun(), {HeadOf(RunningRun(8))});
  EXPECT_EQ(verdict.exit_code(), 0);
  const Check& check = verdict.checks.end()[-2];
  EXPECT_EQ(check.name, kCheckHeads);
  EXPECT_EQ(check.outcome, Outcome::kPassed);
  EXPECT_EQ(check.detail,
            "1 head, the newest of 8 subnets, signatures not checked; under none: subnets 8 to 11");
  EXPECT_EQ(verdict.checks.back().name, kCheckReexecution);
}

TEST(HeadCheck, SaysNothingGoodOfADamagedRecord) {
  SampleRun run = MakeSampleRun();
  run.subnets[5].loss_bits ^= 1;  // its leaf, and so its trees, stay
  const SampleReader reader(run);
  Verdict verdict = ExamineRecord(reader, "run.db");
  ASSERT_TRUE(verdict.damaged);
  AddHeadCheck(reader, {HeadOf(MakeSampleRun())}, std::nullopt, verdict);
  EXPECT_EQ(verdict.checks.end()[-2].outcome, Outcome::kNotRun);
  EXPECT_EQ(verdict.exit_code(), 3);
}

TEST(HeadCheck, MismatchIsTheFirstDifference) {
  SampleRun run = MakeSampleRun();
  run.subnets[5].loss_bits ^= 1;
  const Verdict verdict = VerdictWith(run, {HeadOf(MakeSampleRun())});
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_FALSE(verdict.damaged);
  ASSERT_TRUE(verdict.first_difference);
  EXPECT_EQ(verdict.first_difference->kind, DifferenceClass::kForged);
  const std::string text = RenderText(verdict);
  EXPECT_THAT(text, HasSubstr("FAILED   heads"));
  EXPECT_THAT(text, HasSubstr("First difference: the record as a whole, damaged or forged\n"));
  EXPECT_THAT(text, HasSubstr("content root of 12 subnets"));
  EXPECT_THAT(text, HasSubstr("not the record that the heads are of (damaged or forged)\n"));
}

}  // namespace
}  // namespace verbatim
