#include "verify/html/html_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "supernet/fault.h"
#include "verify/comparison_text.h"
#include "verify/explanation_text.h"
#include "verify/html/html_text.h"
#include "verify/markup.h"
#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What the values beside the record's are those of.
std::string OtherSide(const Verdict& verdict) {
  if (!verdict.reexecuted && !verdict.reference.empty()) return RecordNames(verdict).second;
  return verdict.reexecuted ? "re-execution, here" : "here";
}

const char* VerdictSign(const Verdict& verdict) {
  if (verdict.damaged) return "!";
  if (verdict.first_difference) return "≠";
  return std::string_view(VerdictWord(verdict)) == "equal" ? "=" : "✓";
}

std::string OutcomeHtml(Outcome outcome) {
  const char* sign = outcome == Outcome::kPassed ? "✓" : outcome == Outcome::kFailed ? "✗" : "–";
  const char* css_class = outcome == Outcome::kPassed   ? "passed"
                          : outcome == Outcome::kFailed ? "failed"
                                                        : "not-run";
  return fmt::format("<span class=\"outcome {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
                     css_class, sign, ToString(outcome));
}

/// A row of a value that never is the same twice.
std::string OwnRow(std::string_view name, const std::string& record,
                   const std::optional<std::string>& reference) {
  std::vector<std::string> cells{EscapeXml(name), CodeHtml(record)};
  if (reference) cells.insert(cells.end(), {CodeHtml(*reference), ""});
  return RowHtml(cells);
}

/// A row of two values: marked where both are there and differ.
std::string SettingRow(std::string_view name, const std::string& record,
                       const std::optional<std::string>& reference) {
  std::vector<std::string> cells{EscapeXml(name), CodeHtml(record)};
  if (!reference) return RowHtml(cells);
  const bool differs = *reference != record;
  cells.push_back(CodeHtml(*reference));
  cells.push_back(differs ? "<span class=\"mark\">≠ differs</span>" : "equal");
  return RowHtml(cells, differs ? "differs" : "");
}

std::string SettingRows(const Verdict& verdict, const ReportData& data) {
  const RunInfo& run = verdict.run;
  const RunInfo* other = data.reference_run ? &*data.reference_run : nullptr;
  std::string rows;
  const auto row = [&](const char* name, auto value) {
    rows += SettingRow(name, value(run),
                       other == nullptr ? std::nullopt : std::optional<std::string>(value(*other)));
  };
  rows += OwnRow("record", verdict.record,
                 other == nullptr ? std::nullopt : std::optional(verdict.reference));
  rows += OwnRow("started", run.started_utc,
                 other == nullptr ? std::nullopt : std::optional(other->started_utc));
  row("status", [](const RunInfo& r) { return std::string(ToString(r.status)); });
  if (run.kind == RunKind::kSupernet) {
    row("policy", [](const RunInfo& r) { return r.policy; });
    row("stages", [](const RunInfo& r) { return FormatCount(r.stages); });
    row("most subnets in flight", [](const RunInfo& r) { return FormatCount(r.in_flight); });
    row("partition", [](const RunInfo& r) { return r.partition; });
  }
  row("device", [](const RunInfo& r) { return r.device; });
  row("level", [](const RunInfo& r) { return r.record_level; });
  row("recorded by", [](const RunInfo& r) { return "verbatim " + r.tool_version; });
  for (const SettingDifference& difference : verdict.spec_differences) {
    rows += SettingRow("spec: " + difference.key, difference.a, difference.b);
  }
  return rows;
}

std::string CountRows(const Verdict& verdict) {
  const Counts& counts = verdict.counts;
  std::string rows;
  const auto row = [&](std::string_view name, std::int64_t count) {
    rows += RowHtml({EscapeXml(name), FormatCount(count)});
  };
  const std::string many = WordsOf(verdict.run.kind).many;
  row(many + " planned", counts.subnets_planned);
  row(many + " recorded", counts.subnets);
  row("accesses recorded", counts.accesses);
  row(many + " audited for causality", counts.subnets_audited);
  row("violations of causality", counts.violations);
  if (verdict.reexecuted) {
    row("subnets to be re-executed", verdict.coverage.executed);
    row("subnets re-executed and equal", counts.subnets_reexecuted);
  }
  if (verdict.comparison) {
    const Comparison& comparison = *verdict.comparison;
    row(many + " compared", comparison.subnets_compared);
    row(many + " equal", comparison.subnets_equal);
    row("accesses compared", comparison.accesses_compared);
    row("accesses different", comparison.accesses_different);
    row("origins", comparison.origin_count);
    row("tainted " + many, comparison.tainted_count);
  }
  return rows;
}

std::string ComparedSentence(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kDiff) {
    return fmt::format("Two records were compared, {0} by {0}, in everything that both hold.",
                       WordsOf(verdict.run.kind).one);
  }
  const bool is_steps = verdict.run.kind == RunKind::kSteps;
  std::string text =
      is_steps ? "The record of another trainer was examined by itself: integrity and causality. "
               : "The record was examined by itself: integrity, stream and causality. ";
  if (verdict.reexecuted) {
    text += fmt::format(
        "Then {} trained again, and everything that is recorded of them was compared, bit for bit, "
        "with {}. ",
        FormatCount(verdict.coverage.executed, "of its subnets was", "of its subnets were"),
        ReferenceText(verdict.coverage));
  } else if (!is_steps) {
    text += "Nothing was re-executed. ";
  }
  if (!verdict.reference.empty()) {
    text += fmt::format("Every {} that a recorded reference holds too was compared with it.",
                        WordsOf(verdict.run.kind).one);
  }
  return text;
}

const char* RemarkHtml(const EnvironmentDifference& difference) {
  if (difference.key == kInjectedKey) return "≠ a fault that was made on purpose";
  return difference.numeric ? "<span class=\"mark\">≠ differs, may change bits</span>"
                            : "≠ differs, changes no numbers";
}

std::string EnvironmentRowHtml(const EnvironmentDifference& difference) {
  return RowHtml({CodeHtml(difference.key), CodeHtml(difference.recorded),
                  CodeHtml(difference.here), RemarkHtml(difference)},
                 difference.numeric ? "differs" : "");
}

std::string OriginRows(const Comparison& comparison) {
  std::string rows;
  for (const Difference& origin : comparison.origins) {
    rows += RowHtml({EscapeXml(PlaceText(origin)), ToString(origin.kind), EscapeXml(origin.what),
                     CodeHtml(origin.recorded), CodeHtml(origin.expected)});
  }
  return rows;
}

}  // namespace

std::string VerdictHtml(const Verdict& verdict) {
  std::string html = fmt::format(
      "<p class=\"verdict {0}\"><span class=\"sign\" aria-hidden=\"true\">{1}</span>"
      "<strong>{0}</strong></p>\n<p class=\"summary\">{2}</p>\n",
      VerdictWord(verdict), VerdictSign(verdict), EscapeXml(Summary(verdict)));
  const std::string incomplete = IncompleteText(verdict.run, verdict.counts.subnets);
  if (!incomplete.empty() && !verdict.damaged) {
    html +=
        fmt::format("<p>The run {}{}. This verdict is about what is recorded.</p>\n",
                    verdict.run.status == RunStatus::kFailed ? "" : "was ", EscapeXml(incomplete));
  }
  if (verdict.reexecuted && verdict.exit_code() == 0) {
    const std::string confidence = ConfidenceText(verdict.coverage);
    if (!confidence.empty()) html += "<p>" + EscapeXml(confidence) + "</p>\n";
  }
  const auto numeric =
      std::count_if(verdict.environment_differences.begin(), verdict.environment_differences.end(),
                    [](const EnvironmentDifference& difference) { return difference.numeric; });
  if (numeric > 0) {
    html += fmt::format(
        "<p class=\"note\">The numeric environments differ in {}, so bits may differ for that "
        "alone: <a href=\"#environment\">environment</a>.</p>\n",
        FormatCount(numeric, "fact", "facts"));
  }
  return html;
}

std::string FirstDifferenceHtml(const Verdict& verdict) {
  if (!verdict.first_difference) return "";
  const Difference& difference = *verdict.first_difference;
  std::string html =
      fmt::format("<p class=\"place\">{} <span class=\"class\">{}</span></p>\n<dl>\n",
                  EscapeXml(PlaceText(difference)), ToString(difference.kind));
  const auto item = [&html](std::string_view term, const std::string& value_html) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", term, value_html);
  };
  const auto [recorded, expected] = ValueNames(verdict);
  item("what", EscapeXml(difference.what));
  item(recorded, CodeHtml(difference.recorded));
  item(expected, CodeHtml(difference.expected));
  item("cause", EscapeXml(difference.cause));
  for (const auto& [label, line] : ExplanationLines(verdict)) {
    item(EscapeXml(label), EscapeXml(line));
  }
  html += "</dl>\n";
  if (!difference.next_command.empty()) html += CommandHtml(difference.next_command);
  return SectionHtml("difference", "First difference", html);
}

std::string ComparedHtml(const Verdict& verdict, const ReportData& data) {
  std::vector<std::string> headings{"setting", RecordNames(verdict).first};
  if (data.reference_run) headings.insert(headings.end(), {RecordNames(verdict).second, ""});
  return SectionHtml("compared", "What was compared",
                     "<p>" + ComparedSentence(verdict) + "</p>\n<div class=\"columns\">\n" +
                         TableHtml("Settings", headings, SettingRows(verdict, data)) +
                         TableHtml("Counts", {"count of", "number"}, CountRows(verdict)) +
                         "</div>\n");
}

std::string ChecksHtml(const Verdict& verdict) {
  std::string rows;
  for (const Check& check : verdict.checks) {
    std::string found = EscapeXml(check.detail);
    if (!check.problems.empty()) found += "<ul>";
    for (const std::string& problem : check.problems) {
      found += "<li>" + EscapeXml(problem) + "</li>";
    }
    const std::int64_t more = check.problem_count - std::ssize(check.problems);
    if (more > 0) found += fmt::format("<li>and {} more</li>", FormatCount(more));
    if (!check.problems.empty()) found += "</ul>";
    rows += RowHtml({EscapeXml(check.name), OutcomeHtml(check.outcome), found});
  }
  return SectionHtml("checks", "Checks",
                     TableHtml("Checks", {"check", "outcome", "what was found"}, rows));
}

std::string EnvironmentHtml(const Verdict& verdict, const ReportData& data) {
  std::string rows;
  for (const EnvironmentDifference& difference : verdict.environment_differences) {
    rows += EnvironmentRowHtml(difference);
  }
  const bool compared =
      verdict.reexecuted || !verdict.reference.empty() || !verdict.environment_differences.empty();
  for (const EnvironmentRow& row : data.environment) {
    const auto& differences = verdict.environment_differences;
    const bool differs = std::any_of(differences.begin(), differences.end(),
                                     [&](const auto& one) { return one.key == row.key; });
    if (differs) continue;
    const std::string value = CodeHtml(row.value);
    rows += compared ? RowHtml({CodeHtml(row.key), value, value, "equal"})
                     : RowHtml({CodeHtml(row.key), value});
  }
  std::vector<std::string> headings{"fact", ValueNames(verdict).first};
  if (compared) headings.insert(headings.end(), {OtherSide(verdict), ""});
  return SectionHtml("environment", "Environment",
                     TableHtml("Facts of the numeric environment", headings, rows));
}

std::string OriginsHtml(const Verdict& verdict) {
  if (!verdict.comparison || verdict.comparison->origin_count == 0) return "";
  const Comparison& comparison = *verdict.comparison;
  const auto [recorded, expected] = ValueNames(verdict);
  std::string html =
      TableHtml("Origins: differences whose inputs were all equal",
                {"place", "class", "what", recorded, expected}, OriginRows(comparison));
  const std::int64_t more = comparison.origin_count - std::ssize(comparison.origins);
  if (more > 0) html += fmt::format("<p>and {} more origins</p>\n", FormatCount(more));
  if (comparison.tainted_count > 0) {
    html += fmt::format("<p>Tainted {}, which follow from these: {}</p>\n",
                        WordsOf(verdict.run.kind).many, RangesText(comparison.tainted));
  }
  return html;
}

std::string NextCommandsHtml(const Verdict& verdict) {
  const std::string record = ShellPath(verdict.record);
  std::string html;
  if (verdict.first_difference && !verdict.first_difference->next_command.empty()) {
    html += CommandHtml(verdict.first_difference->next_command);
  }
  if (verdict.run.kind == RunKind::kSteps) {
    html += CommandHtml(fmt::format("verbatim show {}", record));
    return SectionHtml("next", "Next", html);
  }
  if (verdict.kind == VerdictKind::kVerify && !verdict.reexecuted && !verdict.damaged) {
    html += CommandHtml(fmt::format("verbatim verify {} --reexecute all", record));
  }
  if (verdict.damaged && verdict.first_damaged_subnet) {
    html += CommandHtml(
        fmt::format("verbatim show {} --subnet {}", record, *verdict.first_damaged_subnet));
  }
  html += CommandHtml(fmt::format("verbatim show {} --trace trace.json", record));
  return SectionHtml("next", "Next", html);
}

std::string ProblemsHtml(const ReportData& data) {
  if (data.problems.empty()) return "";
  std::string html =
      "<p>Not all of the record could be read; what follows lacks that part.</p>\n<ul>\n";
  for (const std::string& problem : data.problems) html += "<li>" + EscapeXml(problem) + "</li>\n";
  return SectionHtml("unreadable", "What could not be read", html + "</ul>\n");
}

}  // namespace verbatim
