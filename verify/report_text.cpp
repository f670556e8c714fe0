#include <fmt/format.h>

#include "verify/report.h"
#include "verify/explanation_text.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string EnvironmentText(const Verdict& verdict) {
  if (verdict.environment_differences.empty()) return "";
  std::string text = "The environment is not the recorded one:\n";
  for (const EnvironmentDifference& difference : verdict.environment_differences) {
    const auto value = [](const std::string& fact) { return fact.empty() ? "(none)" : fact; };
    text +=
        fmt::format("  {}: recorded {}, here {}{}\n", difference.key, value(difference.recorded),
                    value(difference.here), difference.numeric ? "" : " (changes no numbers)");
  }
  return text + "\n";
}

std::string CheckText(const Check& check) {
  const char* outcome = check.outcome == Outcome::kFailed ? "FAILED" : ToString(check.outcome);
  std::string text = fmt::format("  {:<8} {:<12}", outcome, check.name);
  if (!check.detail.empty()) text += " " + check.detail;
  while (text.back() == ' ') text.pop_back();
  text += "\n";
  for (const std::string& problem : check.problems) text += fmt::format("{:24}{}\n", "", problem);
  const auto shown = static_cast<std::int64_t>(check.problems.size());
  if (check.problem_count > shown) {
    text += fmt::format("{:24}and {} more\n", "", FormatCount(check.problem_count - shown));
  }
  return text;
}

std::string DifferenceText(const Difference& difference) {
  return fmt::format(
      "\nFirst difference: {}, {}\n"
      "  what      {}\n"
      "  recorded  {}\n"
      "  expected  {}\n"
      "  cause     {}\n"
      "  next      {}\n",
      PlaceText(difference), ToString(difference.kind), difference.what, difference.recorded,
      difference.expected, difference.cause, difference.next_command);
}

std::string ExplanationText(const Verdict& verdict) {
  const auto lines = ExplanationLines(verdict);
  if (lines.empty()) return "";
  std::string text = "\nExplanation\n";
  for (const auto& [label, line] : lines) text += fmt::format("  {:<9} {}\n", label, line);
  return text;
}

}  // namespace

std::string RenderText(const Verdict& verdict) {
  std::string text = fmt::format("Record {}{}{}\n\n", verdict.record,
                                 verdict.spec_name.empty() ? "" : ": ", verdict.spec_name);
  text += EnvironmentText(verdict);
  for (const Check& check : verdict.checks) text += CheckText(check);
  if (verdict.first_difference) text += DifferenceText(*verdict.first_difference);
  text += ExplanationText(verdict);
  text += "\n";
  const std::string incomplete = IncompleteText(verdict.run, verdict.counts.subnets);
  if (!incomplete.empty() && !verdict.damaged) {
    const bool failed = verdict.run.status == RunStatus::kFailed;
    text += fmt::format("The run {}{}.\nThis verdict is about what is recorded.\n",
                        failed ? "" : "was ", incomplete);
  }
  if (verdict.reexecuted && verdict.exit_code() == 0) {
    const std::string confidence = ConfidenceText(verdict.coverage);
    if (!confidence.empty()) text += confidence + "\n";
  }
  return text + Summary(verdict) + "\n";
}

}  // namespace verbatim
