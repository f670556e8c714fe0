// Pins the reports: what people read, and the field names that machines rely on.
#include "verify/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/verify/sample_verdicts.h"
#include "verify/text.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

Verdict Sound() {
  Verdict verdict = IntactVerdict();
  verdict.run.in_flight = 1;
  verdict.checks = {PassedCheck("file", "SQLite's checks"),
                    {"re-execution", Outcome::kNotRun, "no"}};
  return verdict;
}

Verdict Equal() {
  Verdict verdict = Sound();
  verdict.reexecuted = true;
  verdict.coverage.executed = 300;
  verdict.counts.subnets_reexecuted = 300;
  verdict.checks[1] = PassedCheck("re-execution");
  return verdict;
}

Verdict Different() {
  Verdict verdict = Sound();
  AddProblem(verdict.checks[0], "something");
  verdict.environment_differences = {{"cpu.model", "A", "B", true}, {"info.host", "x", "", false}};
  verdict.first_difference = ScheduleDifference();
  return verdict;
}

TEST(Summary, SaysWhatWasProvedAndNoMore) {
  EXPECT_EQ(Summary(Sound()), "300 subnets, 4,200 accesses: intact and causal (not re-executed)");
  EXPECT_EQ(Summary(Equal()), "300 subnets, 4,200 accesses: equal to the sequential reference");
  Verdict part = Equal();
  part.counts.subnets_reexecuted = part.coverage.executed = 50;
  part.coverage.description = "the first 50 of 300 subnets";
  EXPECT_EQ(Summary(part),
            "300 subnets, 4,200 accesses: intact and causal; re-executed the first 50 of 300 "
            "subnets, equal to the sequential reference");
  Verdict layout = Equal();
  layout.coverage.stages = 3;
  EXPECT_EQ(Summary(layout), "300 subnets, 4,200 accesses: equal to a replay on 3 stages");
  Verdict gap = Equal();  // re-executed up to a gap in the record
  gap.counts.subnets_audited = 50;
  gap.counts.subnets_reexecuted = gap.coverage.executed = 50;
  EXPECT_THAT(Summary(gap), ::testing::HasSubstr("intact and causal; re-executed"));
  EXPECT_THAT(RenderJson(gap, "0"), ::testing::HasSubstr("\"verdict\": \"intact\""));
  Verdict losses = Equal();
  losses.run.record_level = "losses";
  EXPECT_EQ(Summary(losses),
            "300 subnets, 4,200 accesses: equal to the sequential reference in every loss (weights "
            "are not recorded)");
  Verdict damaged = Equal();
  damaged.damaged = true;
  EXPECT_EQ(Summary(damaged), "the record is damaged");
}

TEST(RenderText, OfAnEqualRun) {
  EXPECT_EQ(RenderText(Equal()),
            "Record run.db: digits\n"
            "\n"
            "  passed   file         SQLite's checks\n"
            "  passed   re-execution\n"
            "\n"
            "300 subnets, 4,200 accesses: equal to the sequential reference\n");
}

TEST(RenderText, OfADifferenceInAnotherEnvironment) {
  EXPECT_EQ(
      RenderText(Different()),
      "Record run.db: digits\n"
      "\n"
      "The environment is not the recorded one:\n"
      "  cpu.model: recorded A, here B\n"
      "  info.host: recorded x, here (none) (changes no numbers)\n"
      "\n"
      "  FAILED   file         SQLite's checks\n"
      "                        something\n"
      "  not run  re-execution no\n"
      "\n"
      "First difference: subnet 12, layer block3.1, forward, schedule\n"
      "  what      version read\n"
      "  recorded  version 7\n"
      "  expected  version 10\n"
      "  cause     subnet 12 read block3.1 at version 7 on stage 1; its causal predecessor is "
      "subnet 10\n"
      "  next      verbatim show run.db --layer block3.1\n"
      "\n"
      "300 subnets, 4,200 accesses: not equal to the sequential reference, first at subnet "
      "12, layer block3.1, forward (schedule)\n");
}

TEST(RenderText, CountsProblemsThatAreNotShown) {
  Verdict verdict = Sound();
  for (int i = 0; i < 1500; ++i) AddDamage(verdict.checks[0], "problem");
  EXPECT_THAT(RenderText(verdict), HasSubstr("and 1,490 more\n"));
}

TEST(RenderText, SaysHowAnIncompleteRunEnded) {
  Verdict verdict = Sound();
  verdict.counts.subnets = 120;
  const auto rendered = [&](RunStatus status) {
    verdict.run.status = status;
    return RenderText(verdict);
  };
  EXPECT_THAT(
      rendered(RunStatus::kInterrupted),
      HasSubstr("The run was interrupted after 120 of 300 subnets.\nThis verdict is about what "
                "is recorded.\n"));
  EXPECT_THAT(rendered(RunStatus::kRunning),
              HasSubstr("never closed (still running, or killed) at 120 of 300 subnets"));
  verdict.run.status_detail = "disk full";
  EXPECT_THAT(rendered(RunStatus::kFailed),
              HasSubstr("The run failed after 120 of 300 subnets: disk full"));
}

TEST(RenderJson, HasTheDocumentedFieldsInOrder) {
  const auto json = nlohmann::ordered_json::parse(RenderJson(Different(), "0.1.0"));
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_THAT(
      keys, testing::ElementsAre("format", "version", "tool_version", "kind", "record", "reference",
                                 "verdict", "exit_code", "summary", "run", "counts", "coverage",
                                 "environment_differences", "spec_differences",
                                 "layout_differences", "checks", "first_difference",
                                 "trees_compared", "comparison", "explanation"));
  EXPECT_EQ(json["first_difference"].dump(),
            R"({"class":"schedule","subnet":12,"layer":8,"layer_name":"block3.1",)"
            R"("phase":"forward","what":"version read","recorded":"version 7",)"
            R"("expected":"version 10","cause":"subnet 12 read block3.1 at version 7 on stage 1; )"
            R"(its causal predecessor is subnet 10",)"
            R"("next_command":"verbatim show run.db --layer block3.1"})");
  EXPECT_EQ(json["counts"].dump(),
            R"({"subnets_planned":300,"subnets":300,"accesses":4200,"subnets_audited":300,)"
            R"("accesses_audited":4200,"violations":0,"subnets_with_violations":0,)"
            R"("subnets_reexecuted":0})");
  EXPECT_EQ(json["checks"][0].dump(),
            R"({"name":"file","outcome":"failed","detail":"SQLite's checks",)"
            R"("problems":["something"],"problem_count":1})");
  EXPECT_EQ(json["environment_differences"][0].dump(),
            R"({"key":"cpu.model","recorded":"A","here":"B","numeric":true})");
}

TEST(RenderJson, NamesTheVerdict) {
  const auto word = [](const Verdict& verdict) {
    return nlohmann::json::parse(RenderJson(verdict, "0"))["verdict"].get<std::string>();
  };
  EXPECT_EQ(word(Sound()), "intact");
  EXPECT_EQ(word(Equal()), "equal");
  EXPECT_EQ(word(Different()), "different");
  Verdict damaged = Different();
  damaged.damaged = true;
  EXPECT_EQ(word(damaged), "damaged");
  EXPECT_TRUE(nlohmann::json::parse(RenderJson(Sound(), "0"))["first_difference"].is_null());
}

TEST(RenderJson, SurvivesBytesThatAreNoUtf8) {
  Verdict verdict = Sound();
  verdict.record = "run\xff.db";
  EXPECT_NO_THROW(RenderJson(verdict, "0"));
}

TEST(FormatCount, GroupsDigitsByThree) {
  const std::pair<std::int64_t, const char*> cases[] = {{0, "0"},
                                                        {7, "7"},
                                                        {999, "999"},
                                                        {1000, "1,000"},
                                                        {4200, "4,200"},
                                                        {123456, "123,456"},
                                                        {1234567, "1,234,567"},
                                                        {-1000, "-1,000"},
                                                        {-100, "-100"}};
  for (const auto& [count, text] : cases) EXPECT_EQ(FormatCount(count), text);
  EXPECT_EQ(FormatCount(1, "subnet", "subnets"), "1 subnet");
}

TEST(ShellWord, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(ShellWord("run.db"), "run.db");
  EXPECT_EQ(ShellWord("my run.db"), "'my run.db'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("-o"), "-o");
  EXPECT_EQ(ShellWord("a\nb"), "$'a\\nb'");
  EXPECT_EQ(ShellWord("it's\\\x1b"
                      "1\t\x7f é"),
            "$'it\\'s\\\\\\0331\\011\\177 é'");
}

TEST(ShellPath, IsNeverAnOption) {
  EXPECT_EQ(ShellPath("run.db"), "run.db");
  EXPECT_EQ(ShellPath("/runs/-dash.db"), "/runs/-dash.db");
  EXPECT_EQ(ShellPath("-dash.db"), "./-dash.db");
  EXPECT_EQ(ShellPath("-my run.db"), "'./-my run.db'");
  EXPECT_EQ(ShellPath("-\n"), "$'./-\\n'");
}

}  // namespace
}  // namespace verbatim
