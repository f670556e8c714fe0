// Examination of step runs: what sound ones pass, and what is found in others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/temporary_folder.h"
#include "tests/verify/step_sample.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StepExamine : public testing::Test {
 protected:
  std::string Path(const std::string& name = "run.db") const {
    return (temporary_.path() / name).string();
  }
  Verdict Examine(const SampleSteps& sample) const {
    return ExamineFile(WriteSteps(sample, Path()));
  }
  static Verdict ExamineFile(const std::string& path) {
    const auto reader = RecordReader::Open(path);
    VERBATIM_CHECK(reader.has_value(), "{}", reader.error().message);
    return ExamineRecord(**reader, "run.db");
  }
  static const Check& Find(const Verdict& verdict, std::string_view name) {
    for (const Check& check : verdict.checks) {
      if (check.name == name) return check;
    }
    VERBATIM_CHECK(false, "no check {}", name);
  }
  void Edit(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(Path().c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_close(database);
  }

  const test::TemporaryFolder temporary_;
};

TEST_F(StepExamine, ASoundRunIsIntact) {
  const Verdict verdict = Examine({});
  EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
  EXPECT_EQ(verdict.spec_name, "sample");
  EXPECT_EQ(verdict.counts.subnets, 20);
  EXPECT_EQ(verdict.counts.accesses, 80);
  std::vector<std::string> names;
  for (const Check& check : verdict.checks) names.push_back(check.name);
  EXPECT_THAT(names, ElementsAre("file", "run", "layers", "steps", "stream", "causality",
                                 "evaluations", "trees", "seals", "checkpoints", "re-execution"));
  EXPECT_EQ(Find(verdict, "stream").detail, "a step run has no stream");
  EXPECT_EQ(Find(verdict, "steps").detail, "20 steps, 80 accesses");
  EXPECT_EQ(Find(verdict, "re-execution").outcome, Outcome::kNotRun);
  EXPECT_EQ(Summary(verdict), "20 steps, 80 accesses: intact and causal (of another trainer)");
  EXPECT_THAT(RenderText(verdict), testing::Not(HasSubstr("subnet")));
}

TEST_F(StepExamine, EveryLevelIntervalAndEndIsSound) {
  for (const char* level : {"losses", "weights", "full"}) {
    SampleSteps sample;
    sample.run.record_level = level;
    sample.run.spec.gradients = std::string_view(level) == "full";
    if (!sample.run.spec.gradients) sample.layers.pop_back();
    sample.run.spec.every = 3;
    sample.first = 7;
    sample.status = RunStatus::kInterrupted;
    const Verdict verdict = Examine(sample);
    EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
    EXPECT_THAT(RenderText(verdict), HasSubstr("The run was interrupted after 6 steps."));
  }
}

TEST_F(StepExamine, FindsAWriteFromOutside) {
  SampleSteps sample;
  sample.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 12) row.facts.outside = {1, 2};
    if (step == 15) row.facts.outside = {2};
  };
  const Verdict verdict = Examine(sample);
  EXPECT_EQ(verdict.exit_code(), 1);
  ASSERT_TRUE(verdict.first_difference.has_value());
  const Difference& first = *verdict.first_difference;
  EXPECT_EQ(first.kind, DifferenceClass::kSchedule);
  EXPECT_EQ(first.seq, 12);
  EXPECT_EQ(first.layer_name, "bn.mean");
  EXPECT_EQ(first.cause, "bn.mean was written after step 11's update and before step 12 read it");
  EXPECT_EQ(first.next_command, "verbatim show run.db --layer bn.mean");
  const Check& causality = Find(verdict, "causality");
  EXPECT_EQ(causality.detail, "3 violations in 2 steps");
  EXPECT_EQ(causality.problem_count, 3);
  EXPECT_EQ(causality.problems.size(), 3U);
  EXPECT_EQ(verdict.counts.violations, 3);
  EXPECT_EQ(verdict.counts.subnets_with_violations, 2);
  EXPECT_EQ(Summary(verdict),
            "20 steps, 80 accesses: not causal, first at step 12, layer bn.mean, forward "
            "(schedule)");
}

TEST_F(StepExamine, ALossThatWasNotToldIsNoNan) {
  SampleSteps sample;
  sample.after = [](std::int64_t, StepRow& row, SampleState&) { row.loss_bits.reset(); };
  EXPECT_EQ(Find(Examine(sample), "steps").detail, "20 steps, 80 accesses");
  sample.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 12) row.loss_bits = 0xffc00000;
  };
  EXPECT_EQ(Find(Examine(sample), "steps").detail, "20 steps, 80 accesses; 1 loss is NaN");
}

TEST_F(StepExamine, SaysBetweenWhichRecordedStepsAWriteWas) {
  SampleSteps sample;
  sample.run.spec.every = 10;
  sample.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 0 || step == 10) row.facts.outside = {0};
  };
  const Verdict verdict = Examine(sample);
  EXPECT_THAT(Find(verdict, "causality").problems,
              ElementsAre("step 0: fc1.weight was written before step 0, the first, read it",
                          "step 10: fc1.weight was written between step 0 and step 10, by no "
                          "update"));
}

TEST_F(StepExamine, FindsDamageOfEachKind) {
  const std::pair<const char*, const char*> kEdits[] = {
      {"UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 3",
       "step 3: its row was changed after it was written"},
      {"UPDATE steps SET step = 100 WHERE seq = 3", "step 100: its row was changed"},
      {"UPDATE steps SET facts = '{\"settings\":{\"lr\":0.2}}' WHERE seq = 3",
       "step 3: its row was changed"},
      {"UPDATE steps SET step = 1 WHERE seq = 3", "step 1 comes after step 2"},
      {"UPDATE steps SET facts = '{' WHERE seq = 3", "table steps"},
      {"UPDATE layers SET op = 'conv 3x3' WHERE layer = 0",
       "layer 0 (fc1.weight) is 'conv 3x3', which is unknown"},
      {"UPDATE run SET spec_json = '{}'", "the recorded spec"},
      {"UPDATE run SET policy = 'causal'", "unknown policy 'causal'"},
      {"DELETE FROM steps WHERE seq = 3; DELETE FROM subnets WHERE seq = 3", "row 3 is missing"},
      {"DELETE FROM environment", "the run's circumstances were changed"},
      {"INSERT INTO evaluations VALUES (0, '[]', 1, 2)", "where a step run has none"},
  };
  for (const auto& [sql, problem] : kEdits) {
    WriteSteps({}, Path());
    Edit(std::string("PRAGMA foreign_keys = OFF;") + sql);
    const Verdict verdict = ExamineFile(Path());
    EXPECT_EQ(verdict.exit_code(), 3) << sql << "\n" << RenderText(verdict);
    EXPECT_THAT(RenderText(verdict), HasSubstr(problem)) << sql;
  }
}

}  // namespace
}  // namespace verbatim
