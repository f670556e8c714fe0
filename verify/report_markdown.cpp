#include "verify/report_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "verify/comparison_text.h"
#include "verify/explanation_text.h"
#include "verify/markup.h"
#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

const char* Sign(const Verdict& verdict) {
  if (verdict.damaged) return "⚠️";
  return verdict.first_difference ? "❌" : "✅";
}

std::string Title(const Verdict& verdict) {
  std::string text = fmt::format("### {} {}: {}", Sign(verdict), VerdictWord(verdict),
                                 MarkdownCode(verdict.record));
  if (!verdict.reference.empty()) text += " against " + MarkdownCode(verdict.reference);
  if (!verdict.spec_name.empty()) text += fmt::format(" ({})", EscapeMarkdown(verdict.spec_name));
  return text + "\n\n";
}

std::string ValueCell(const std::string& value) {
  return value.empty() ? "(none)" : MarkdownCode(value);
}

std::string EnvironmentTable(const Verdict& verdict) {
  if (verdict.environment_differences.empty()) return "";
  const bool is_here = verdict.reexecuted || verdict.reference.empty();
  std::string text =
      fmt::format("{}:\n\n| fact | {} | {} | may change bits |\n|---|---|---|---|\n",
                  is_here ? "The environment is not the recorded one" : "The environments differ",
                  is_here ? "recorded" : RecordNames(verdict).first,
                  is_here ? "here" : RecordNames(verdict).second);
  for (const EnvironmentDifference& difference : verdict.environment_differences) {
    text += fmt::format("| {} | {} | {} | {} |\n", EscapeMarkdown(difference.key),
                        ValueCell(difference.recorded), ValueCell(difference.here),
                        difference.numeric ? "yes" : "no");
  }
  return text + "\n";
}

std::string SettingTable(const char* what, const Verdict& verdict,
                         const std::vector<SettingDifference>& differences) {
  if (differences.empty()) return "";
  const auto [record, reference] = RecordNames(verdict);
  std::string text = fmt::format("| {} | {} | {} |\n|---|---|---|\n", what, record, reference);
  for (const SettingDifference& difference : differences) {
    text += fmt::format("| {} | {} | {} |\n", EscapeMarkdown(difference.key),
                        ValueCell(difference.a), ValueCell(difference.b));
  }
  return text + "\n";
}

/// A block whose fence is longer than any run of backticks within.
std::string CodeBlock(const std::string& code) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : code) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fmt::format("{}sh\n{}\n{}\n\n", fence, ValidUtf8(code), fence);
}

std::string FirstDifference(const Verdict& verdict) {
  const Difference& difference = *verdict.first_difference;
  const auto [recorded, expected] = ValueNames(verdict);
  std::string text = fmt::format("**First difference:** {} — {}\n\n",
                                 EscapeMarkdown(PlaceText(difference)), ToString(difference.kind));
  text += fmt::format("| {} | value |\n|---|---|\n", EscapeMarkdown(difference.what));
  text += fmt::format("| {} | {} |\n", recorded, ValueCell(difference.recorded));
  text += fmt::format("| {} | {} |\n\n", expected, ValueCell(difference.expected));
  if (!difference.cause.empty()) text += EscapeMarkdown(difference.cause) + "\n\n";
  if (!difference.next_command.empty()) text += CodeBlock(difference.next_command);
  return text;
}

std::string ExplanationTable(const Verdict& verdict) {
  const auto lines = ExplanationLines(verdict);
  if (lines.empty()) return "";
  std::string text = "| explanation | |\n|---|---|\n";
  for (const auto& [label, line] : lines) {
    text += fmt::format("| {} | {} |\n", EscapeMarkdown(label), EscapeMarkdown(line));
  }
  return text + "\n";
}

std::string Details(std::string_view summary, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", summary, content);
}

std::string Checks(const std::vector<Check>& checks) {
  const auto count = [&](Outcome outcome) {
    return std::count_if(checks.begin(), checks.end(),
                         [outcome](const Check& check) { return check.outcome == outcome; });
  };
  std::string table = "| check | outcome | what was found |\n|---|---|---|\n";
  for (const Check& check : checks) {
    std::string found = EscapeMarkdown(check.detail);
    for (const std::string& problem : check.problems) {
      found += (found.empty() ? "" : "<br>") + EscapeMarkdown(problem);
    }
    const auto more = check.problem_count - static_cast<std::int64_t>(check.problems.size());
    if (more > 0) found += fmt::format("<br>and {} more", FormatCount(more));
    const bool failed = check.outcome == Outcome::kFailed;
    table += fmt::format("| {} | {} | {} |\n", EscapeMarkdown(check.name),
                         failed ? "**failed**" : ToString(check.outcome), found);
  }
  return Details(fmt::format("Checks: {} passed, {} failed, {} not run", count(Outcome::kPassed),
                             count(Outcome::kFailed), count(Outcome::kNotRun)),
                 table);
}

std::string Spread(const Comparison& comparison, RunKind kind) {
  const RunWords words = WordsOf(kind);
  if (comparison.origin_count == 0) return "";
  constexpr std::size_t kShown = 10;
  std::string text = "| origin | class | what |\n|---|---|---|\n";
  const std::size_t shown = std::min(kShown, comparison.origins.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& origin = comparison.origins[i];
    text += fmt::format("| {} | {} | {} |\n", EscapeMarkdown(PlaceText(origin)),
                        ToString(origin.kind), EscapeMarkdown(origin.what));
  }
  const std::int64_t more = comparison.origin_count - static_cast<std::int64_t>(shown);
  if (more > 0) text += fmt::format("\nand {} more\n", FormatCount(more));
  if (comparison.tainted_count > 0) {
    text += fmt::format("\nTainted {}: {}\n", words.many, RangesText(comparison.tainted));
  }
  return Details(
      fmt::format("{}, {} tainted {}", FormatCount(comparison.origin_count, "origin", "origins"),
                  FormatCount(comparison.tainted_count),
                  comparison.tainted_count == 1 ? words.one : words.many),
      text);
}

}  // namespace

std::string RenderMarkdown(const Verdict& verdict) {
  std::string text = Title(verdict);
  text += EscapeMarkdown(Summary(verdict)) + "\n\n";
  const std::string incomplete = IncompleteText(verdict.run, verdict.counts.subnets);
  if (!incomplete.empty() && !verdict.damaged) {
    text += fmt::format("The run {}{}; this verdict is about what is recorded.\n\n",
                        verdict.run.status == RunStatus::kFailed ? "" : "was ",
                        EscapeMarkdown(incomplete));
  }
  if (verdict.reexecuted && verdict.exit_code() == 0) {
    const std::string confidence = ConfidenceText(verdict.coverage);
    if (!confidence.empty()) text += EscapeMarkdown(confidence) + "\n\n";
  }
  text += EnvironmentTable(verdict);
  text += SettingTable("spec", verdict, verdict.spec_differences);
  text += SettingTable("layout", verdict, verdict.layout_differences);
  if (verdict.first_difference) text += FirstDifference(verdict);
  text += ExplanationTable(verdict);
  if (verdict.comparison) text += Spread(*verdict.comparison, verdict.run.kind);
  text += Checks(verdict.checks);
  text.pop_back();  // no empty line at the end
  return text;
}

}  // namespace verbatim
