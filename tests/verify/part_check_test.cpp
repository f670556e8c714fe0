// Proves that a record in which any number was changed, cut or replaced after the run, and which
// agrees with itself, does not agree with what another rank kept; and that an honest record does,
// resumed or not.
#include "verify/part_check.h"

#include <gmock/gmock.h>

#include <bit>
#include <functional>

#include "recorder/part_format.h"
#include "tests/recorder/sample_part.h"
#include "tests/temporary_folder.h"
#include "tests/verify/sample_run.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// With a task of each stage per subnet.
SampleRun MakeRun(const std::string& level = "full") {
  SampleRun run = MakeSampleRun(level);
  for (SubnetRow& row : run.subnets) {
    for (int stage = 0; stage < 2; ++stage) {
      const std::int64_t begin = 100 * row.seq + 10 * stage;
      row.activities.push_back({stage, 0, Phase::kForward, begin, begin + 5});
      row.activities.push_back({stage, 0, Phase::kBackward, begin + 6, begin + 9});
    }
  }
  Seal(run);
  return run;
}

/// What the rank of the second stage, with the head, keeps of the row.
RankReport PartOf(const SubnetRow& row) {
  RankReport report;
  report.loss = std::bit_cast<float>(row.loss_bits);
  for (const AccessRow& access : row.accesses) {
    if (access.stage == 1) report.accesses.push_back(access);
  }
  for (const ActivationRow& activation : row.activations) {
    if (activation.position >= 2) report.activations.push_back(activation);
  }
  for (const ActivityRow& task : row.activities) {
    if (task.stage == 1) report.activity.push_back(task);
  }
  return report;
}

std::string FrameOf(const SubnetRow& row) {
  return EncodeFrame(row.seq, EncodeReport(row.seq, PartOf(row)));
}

std::string SessionOf(const SampleRun& run, int ranks = 2) {
  return EncodeFrame(
      PartSession{SpecDigest(run.run.spec_json), 1, ranks, "node-7", "2026-01-31T12:00:00Z"});
}

std::string PartFileOf(const SampleRun& run) {
  std::string bytes = EncodePartHead() + SessionOf(run);
  for (const SubnetRow& row : run.subnets) bytes += FrameOf(row);
  return bytes;
}

class ResumedReader : public SampleReader {
 public:
  ResumedReader(const SampleRun& sample, std::vector<std::int64_t> cuts)
      : SampleReader(sample), cuts_(std::move(cuts)) {}
  Result<std::vector<ResumptionRow>> Resumptions() const override {
    std::vector<ResumptionRow> rows;
    for (const std::int64_t cut : cuts_) {
      ResumptionRow& row = rows.emplace_back();
      row.resumption = std::ssize(rows);
      row.stages = 2;
      row.cut = cut;
      row.facts_json = "{}";
    }
    return rows;
  }

 private:
  std::vector<std::int64_t> cuts_;
};

class PartCheckTest : public ::testing::Test {
 protected:
  Status Add(const RecordReader& reader, const std::vector<std::string>& files, Verdict& verdict) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& bytes : files) {
      paths.push_back(
          test::WriteBytes(folder_ / ("run.db.rank-" + std::to_string(paths.size() + 1)), bytes));
    }
    ASSIGN_OR_RETURN(auto parts, OpenParts(paths));
    return AddPartCheck(reader, parts, verdict);
  }

  /// Verifies the run, made to agree with itself, against the file.
  Verdict Verify(SampleRun run, const std::string& file, std::vector<std::int64_t> cuts = {}) {
    Seal(run);
    const ResumedReader reader(run, std::move(cuts));
    Verdict verdict = ExamineRecord(reader, "run.db");
    const Status added = Add(reader, {file}, verdict);
    EXPECT_TRUE(added.has_value()) << added.error().message;
    return verdict;
  }

  static const Check& PartsOf(const Verdict& verdict) {
    return *std::ranges::find(verdict.checks, std::string(kCheckParts), &Check::name);
  }

  test::TemporaryFolder folder_;
};

TEST_F(PartCheckTest, UnchangedRecordAgrees) {
  for (const char* level : {"losses", "weights", "full"}) {
    const SampleRun run = MakeRun(level);
    const Verdict verdict = Verify(run, PartFileOf(run));
    EXPECT_EQ(PartsOf(verdict).outcome, Outcome::kPassed) << level;
    EXPECT_EQ(PartsOf(verdict).detail, "12 parts compared, of rank 1");
    EXPECT_EQ(verdict.exit_code(), 0);
  }
}

TEST_F(PartCheckTest, CheckComesBeforeTheReexecution) {
  const SampleRun run = MakeRun();
  const Verdict verdict = Verify(run, PartFileOf(run));
  EXPECT_EQ((verdict.checks.end() - 2)->name, kCheckParts);
}

TEST_F(PartCheckTest, EveryChangeOfWhatTheRankDidIsNamed) {
  const SampleRun honest = MakeRun();
  const auto last = [](SampleRun& run) -> AccessRow& { return run.subnets[5].accesses.back(); };
  const struct {
    const char* what;
    bool has_layer;
    std::function<void(SampleRun&)> change;
  } cases[] = {
      {"loss", false, [](SampleRun& run) { run.subnets[5].loss_bits ^= 1; }},
      {"weights", true, [&](SampleRun& run) { last(run).weights->bytes[3] ^= 1; }},
      {"optimizer state", true, [&](SampleRun& run) { last(run).optimizer_state->bytes[3] ^= 1; }},
      {"gradients", true, [&](SampleRun& run) { last(run).gradients->bytes[3] ^= 1; }},
      {"version read", true, [&](SampleRun& run) { last(run).read_seq = 0; }},
      {"version updated", true, [&](SampleRun& run) { last(run).base_seq = 0; }},
      {"stage", true, [&](SampleRun& run) { last(run).stage = 0; }},
      {"activation of micro-batch 1", true,
       [](SampleRun& run) { run.subnets[5].activations.back().digest.bytes[1] ^= 1; }},
      {"task", false, [](SampleRun& run) { run.subnets[5].activities.back().end_ns += 1; }},
      {"task", false, [](SampleRun& run) { run.subnets[5].activities.pop_back(); }},
      {"task", false,
       [](SampleRun& run) {
         run.subnets[5].activities.push_back({1, 1, Phase::kUpdate, 900, 901});
       }},
  };
  for (const auto& test : cases) {
    SampleRun run = honest;
    test.change(run);
    const Verdict verdict = Verify(run, PartFileOf(honest));
    const Check& check = PartsOf(verdict);
    EXPECT_EQ(check.outcome, Outcome::kFailed) << test.what;
    EXPECT_THAT(check.problems, ElementsAre(AllOf(HasSubstr("subnet 5"), HasSubstr(test.what),
                                                  HasSubstr("run.db.rank-1"))));
    ASSERT_TRUE(verdict.first_difference) << test.what;
    const Difference& difference = *verdict.first_difference;
    EXPECT_EQ(difference.kind, DifferenceClass::kForged);
    EXPECT_EQ(difference.seq, 5);
    EXPECT_EQ(difference.what, test.what);
    EXPECT_EQ(difference.layer.has_value(), test.has_layer) << test.what;
    EXPECT_NE(difference.recorded, difference.expected);
    EXPECT_THAT(difference.cause, AllOf(HasSubstr("rank 1 kept another value in"),
                                        HasSubstr("run.db.rank-1, on node-7")));
    EXPECT_EQ(difference.next_command, "verbatim replay run.db --subnet 5");
    EXPECT_EQ(verdict.exit_code(), 1);
    EXPECT_THAT(Summary(verdict), HasSubstr("not what its ranks kept (damaged or forged)"));
  }
}

TEST_F(PartCheckTest, RecordMadePoorerIsADifference) {
  const SampleRun honest = MakeRun("full");
  SampleRun run = MakeRun("losses");
  const Verdict verdict = Verify(run, PartFileOf(honest));
  EXPECT_EQ(PartsOf(verdict).outcome, Outcome::kFailed);
  EXPECT_EQ(PartsOf(verdict).problem_count, kSampleSubnets);
  ASSERT_TRUE(verdict.first_difference);
  EXPECT_EQ(verdict.first_difference->seq, 0);
  EXPECT_EQ(verdict.first_difference->recorded, "none");
}

TEST_F(PartCheckTest, FirstDifferenceIsThatOfTheFirstSubnet) {
  const SampleRun honest = MakeRun();
  SampleRun run = honest;
  run.subnets[3].loss_bits ^= 1;
  run.subnets[8].loss_bits ^= 1;
  std::string file = EncodePartHead() + SessionOf(run);  // finished in another order
  for (const int seq : {9, 8, 3, 4}) file += FrameOf(honest.subnets[seq]);
  const Verdict verdict = Verify(run, file);
  EXPECT_EQ(PartsOf(verdict).problem_count, 2);
  EXPECT_EQ(verdict.first_difference->seq, 3);
}

TEST_F(PartCheckTest, EditedRowIsDamageAndTheFileSaysWhatWasThere) {
  const SampleRun honest = MakeRun();
  SampleRun run = honest;
  run.subnets[5].accesses.back().weights->bytes[3] ^= 1;  // its leaf is left as it was
  const SampleReader reader(run);
  Verdict verdict = ExamineRecord(reader, "run.db");
  ASSERT_TRUE(Add(reader, {PartFileOf(honest)}, verdict).has_value());
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_THAT(PartsOf(verdict).problems,
              ElementsAre(HasSubstr(ToShortHex(*honest.subnets[5].accesses.back().weights))));
}

TEST_F(PartCheckTest, WhatOnlyTheRankCommittedIsCounted) {
  const SampleRun honest = MakeRun();
  SampleRun run = honest;
  run.subnets.resize(10);
  run.run.status = RunStatus::kRunning;
  run.run.ended_utc.clear();
  run.evaluations.clear();
  const Verdict verdict = Verify(run, PartFileOf(honest));
  EXPECT_EQ(PartsOf(verdict).outcome, Outcome::kPassed);
  EXPECT_EQ(PartsOf(verdict).detail,
            "10 parts compared, of rank 1; 2 subnets not recorded: subnet 10: only rank 1's part "
            "was committed");
  EXPECT_EQ(verdict.exit_code(), 0);
}

TEST_F(PartCheckTest, ResumedRunMayHaveOtherStagesAndTimesOnlyWhereItExecutedAgain) {
  SampleRun run = MakeRun();
  // Killed after subnet 8, resumed at 6: rank 1 has 6 to 8 twice, and other times the second time.
  std::string file = EncodePartHead() + SessionOf(run);
  for (int seq = 0; seq <= 8; ++seq) file += FrameOf(run.subnets[seq]);
  file += SessionOf(run, 3);
  for (int seq = 6; seq < kSampleSubnets; ++seq) {
    SubnetRow again = run.subnets[seq];
    for (ActivityRow& task : again.activities) task.begin_ns -= 1;
    file += FrameOf(again);
  }
  EXPECT_EQ(PartsOf(Verify(run, file, {6})).outcome, Outcome::kPassed);

  SampleRun other_times = run;
  other_times.subnets[4].activities.back().begin_ns -= 1;
  EXPECT_EQ(PartsOf(Verify(other_times, file, {6})).outcome, Outcome::kFailed);

  SampleRun other_content = run;
  other_content.subnets[7].loss_bits ^= 1;
  EXPECT_EQ(PartsOf(Verify(other_content, file, {6})).problem_count, 2) << "both executions'";
}

TEST_F(PartCheckTest, TornTailIsTold) {
  const SampleRun run = MakeRun();
  const std::string file = PartFileOf(run);
  const std::string last = FrameOf(run.subnets.back());
  const Verdict verdict = Verify(run, file.substr(0, file.size() - last.size() + 3));
  EXPECT_EQ(PartsOf(verdict).outcome, Outcome::kPassed);
  EXPECT_THAT(PartsOf(verdict).detail, HasSubstr("11 parts compared"));
  EXPECT_THAT(PartsOf(verdict).detail, HasSubstr("ends in 3 bytes of an unfinished part"));
}

TEST_F(PartCheckTest, SeveralRanksAreNamed) {
  SampleRun run = MakeRun();
  PartSession second{SpecDigest(run.run.spec_json), 2, 3, "node-8", "2026-01-31T12:00:00Z"};
  std::string other = EncodePartHead() + EncodeFrame(second);
  for (const SubnetRow& row : run.subnets) other += FrameOf(row);
  const std::string one = PartFileOf(run);
  run.subnets.resize(11);
  run.run.status = RunStatus::kRunning;
  run.run.ended_utc.clear();
  run.evaluations.clear();
  const SampleReader reader(run);
  Verdict verdict = ExamineRecord(reader, "run.db");
  ASSERT_TRUE(Add(reader, {one, other}, verdict).has_value());
  EXPECT_EQ(PartsOf(verdict).detail,
            "22 parts compared, of ranks 1, 2; 1 subnet not recorded: subnet 11: only the parts of "
            "ranks 1 and 2 were committed");
}

TEST_F(PartCheckTest, OtherFilesAreRefused) {
  const SampleRun run = MakeRun();
  SampleRun stranger = run;
  stranger.run.spec_json += " ";
  const SampleReader reader(run);
  const struct {
    std::string file;
    const char* message;
  } cases[] = {
      {PartFileOf(stranger), "of a run with another spec than run.db"},
      {"garbage", "is no rank's part file"},
      {PartFileOf(run).substr(0, 30), "is cut off before it says whose it is"},
  };
  for (const auto& test : cases) {
    Verdict verdict = ExamineRecord(reader, "run.db");
    const Status added = Add(reader, {test.file}, verdict);
    ASSERT_FALSE(added.has_value()) << test.message;
    EXPECT_EQ(added.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(added.error().message, HasSubstr(test.message));
    EXPECT_FALSE(added.error().hint.empty());
  }
}

TEST_F(PartCheckTest, RecordWithoutReadableHeadIsNotCompared) {
  const SampleRun run = MakeRun();
  SampleRun damaged = run;
  damaged.layers.clear();
  const SampleReader reader(damaged);
  Verdict verdict = ExamineRecord(reader, "run.db");
  ASSERT_TRUE(Add(reader, {PartFileOf(run)}, verdict).has_value());
  EXPECT_EQ(PartsOf(verdict).outcome, Outcome::kNotRun);
  EXPECT_EQ(verdict.exit_code(), 3);
}

}  // namespace
}  // namespace verbatim
