#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "supernet/fault.h"
#include "verify/comparison_text.h"
#include "verify/explanation_text.h"
#include "verify/report.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string ValueText(const std::string& value) {
  return value.empty() ? "(none)" : value;
}

const char* Remark(const EnvironmentDifference& difference) {
  if (difference.key == kInjectedKey) return " (a fault that was made on purpose)";
  return difference.numeric ? "" : " (changes no numbers)";
}

std::string EnvironmentText(const Verdict& verdict) {
  if (verdict.environment_differences.empty()) return "";
  const bool of_records = !verdict.reference.empty() && !verdict.reexecuted;
  const auto [left, right] =
      of_records ? RecordNames(verdict) : std::pair<const char*, const char*>("recorded", "here");
  std::string text =
      of_records ? "The environments differ:\n" : "The environment is not the recorded one:\n";
  for (const EnvironmentDifference& difference : verdict.environment_differences) {
    text +=
        fmt::format("  {}: {} {}, {} {}{}\n", difference.key, left, ValueText(difference.recorded),
                    right, ValueText(difference.here), Remark(difference));
  }
  return text + "\n";
}

std::string SettingsText(const char* title, const Verdict& verdict,
                         const std::vector<SettingDifference>& settings) {
  if (settings.empty()) return "";
  constexpr std::size_t kShown = 20;
  const auto [left, right] = RecordNames(verdict);
  std::string text = fmt::format("{}:\n", title);
  const std::size_t shown = std::min(kShown, settings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}: {} {}, {} {}\n", settings[i].key, left, ValueText(settings[i].a),
                        right, ValueText(settings[i].b));
  }
  const auto more = std::ssize(settings) - static_cast<std::int64_t>(shown);
  if (more > 0) text += fmt::format("  and {} more\n", FormatCount(more));
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

std::string DifferenceText(const Verdict& verdict) {
  const Difference& difference = *verdict.first_difference;
  const auto [recorded, expected] = ValueNames(verdict);
  return fmt::format(
      "\nFirst difference: {}, {}\n"
      "  what      {}\n"
      "  {:<9} {}\n"
      "  {:<9} {}\n"
      "  cause     {}\n"
      "  next      {}\n",
      PlaceText(difference), ToString(difference.kind), difference.what, recorded,
      difference.recorded, expected, difference.expected, difference.cause,
      difference.next_command);
}

std::string TitleText(const Verdict& verdict) {
  const std::string name = verdict.spec_name.empty() ? "" : ": " + verdict.spec_name;
  if (verdict.kind != VerdictKind::kDiff)
    return fmt::format("Record {}{}\n\n", verdict.record, name);
  return fmt::format("Record A {}, record B {}{}\n\n", verdict.record, verdict.reference, name);
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
  std::string text = TitleText(verdict) + EnvironmentText(verdict);
  text += SettingsText("The specs differ", verdict, verdict.spec_differences);
  text += SettingsText("The layouts differ", verdict, verdict.layout_differences);
  for (const Check& check : verdict.checks) text += CheckText(check);
  if (verdict.first_difference) text += DifferenceText(verdict);
  if (verdict.comparison) text += ComparisonText(*verdict.comparison, verdict.run.kind);
  text += ExplanationText(verdict);
  text += "\n";
  const std::string incomplete = IncompleteText(verdict.run, verdict.counts.subnets);
  if (!incomplete.empty() && !verdict.damaged && verdict.kind != VerdictKind::kDiff) {
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
