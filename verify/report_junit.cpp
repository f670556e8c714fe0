#include "verify/report_junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "verify/explanation_text.h"
#include "verify/markup.h"
#include "verify/report.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string Attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, EscapeXml(value));
}

std::string Property(std::string_view name, std::string_view value) {
  return "      <property" + Attribute("name", name) + Attribute("value", value) + "/>\n";
}

std::string Property(std::string_view name, std::int64_t value) {
  return Property(name, fmt::format("{}", value));
}

std::string Properties(const Verdict& verdict, const std::string& tool_version) {
  const RunInfo& run = verdict.run;
  const Counts& counts = verdict.counts;
  std::string text = "    <properties>\n";
  text += Property("tool_version", tool_version);
  text += Property("verdict", VerdictWord(verdict));
  text += Property("exit_code", verdict.exit_code());
  text += Property("summary", Summary(verdict));
  if (!verdict.reference.empty()) text += Property("reference", verdict.reference);
  text += Property("run.status", ToString(run.status));
  text += Property("run.policy", run.policy);
  text += Property("run.stages", run.stages);
  text += Property("run.in_flight", run.in_flight);
  text += Property("run.device", run.device);
  text += Property("run.record_level", run.record_level);
  text += Property("run.tool_version", run.tool_version);
  if (run.kind == RunKind::kSteps) text += Property("run.kind", "steps");
  text += Property("counts.subnets_planned", counts.subnets_planned);
  text += Property("counts.subnets", counts.subnets);
  text += Property("counts.accesses", counts.accesses);
  text += Property("counts.violations", counts.violations);
  text += Property("counts.subnets_reexecuted", counts.subnets_reexecuted);
  if (verdict.reexecuted) {
    text += Property("coverage.description", verdict.coverage.description);
    text += Property("coverage.subnets_executed", verdict.coverage.executed);
    text += Property("coverage.stages", verdict.coverage.stages);
  }
  const bool is_diff = verdict.kind == VerdictKind::kDiff;
  const bool is_here = verdict.reexecuted || verdict.reference.empty();
  const char* left = is_diff ? ".A" : ".recorded";
  const char* right = is_diff ? ".B" : is_here ? ".here" : ".reference";
  for (const EnvironmentDifference& difference : verdict.environment_differences) {
    text += Property("environment." + difference.key + left, difference.recorded);
    text += Property("environment." + difference.key + right, difference.here);
  }
  const auto [record, reference] = RecordNames(verdict);
  for (const SettingDifference& difference : verdict.spec_differences) {
    text += Property("spec." + difference.key + "." + record, difference.a);
    text += Property("spec." + difference.key + "." + reference, difference.b);
  }
  for (const SettingDifference& difference : verdict.layout_differences) {
    text += Property("layout." + difference.key + "." + record, difference.a);
    text += Property("layout." + difference.key + "." + reference, difference.b);
  }
  return text + "    </properties>\n";
}

std::string DifferenceText(const Verdict& verdict) {
  const Difference& difference = *verdict.first_difference;
  const auto [recorded, expected] = ValueNames(verdict);
  return fmt::format(
      "First difference: {}, {}\n"
      "  what      {}\n"
      "  {:<9} {}\n"
      "  {:<9} {}\n"
      "  cause     {}\n"
      "  next      {}\n",
      PlaceText(difference), ToString(difference.kind), difference.what, recorded,
      difference.recorded, expected, difference.expected, difference.cause,
      difference.next_command);
}

std::string Problems(const Check& check) {
  std::string text = check.detail.empty() ? "" : check.detail + "\n";
  for (const std::string& problem : check.problems) text += problem + "\n";
  const auto more = check.problem_count - static_cast<std::int64_t>(check.problems.size());
  if (more > 0) text += fmt::format("and {} more\n", FormatCount(more));
  return text;
}

std::string FailureMessage(const Verdict& verdict, const Check& check) {
  if (!check.problems.empty()) return check.problems.front();
  return check.detail.empty() ? Summary(verdict) : check.detail;
}

std::string FailureElement(const Verdict& verdict, const Check& check) {
  const char* element = check.damage ? "error" : "failure";
  const char* type = check.damage               ? "damage"
                     : verdict.first_difference ? ToString(verdict.first_difference->kind)
                                                : "difference";
  std::string text = Problems(check);
  if (verdict.first_difference) text += "\n" + DifferenceText(verdict);
  for (const auto& [label, line] : ExplanationLines(verdict)) {
    text += fmt::format("  {:<9} {}\n", label, line);
  }
  return fmt::format("      <{}{}{}>{}</{}>\n", element,
                     Attribute("message", FailureMessage(verdict, check)), Attribute("type", type),
                     EscapeXml(text), element);
}

std::string Case(const Verdict& verdict, const Check& check) {
  const std::string name = verdict.spec_name.empty() ? "record" : verdict.spec_name;
  const std::string head =
      "    <testcase" + Attribute("classname", "verbatim." + name) + Attribute("name", check.name);
  switch (check.outcome) {
    case Outcome::kPassed:
      if (check.detail.empty()) return head + "/>\n";
      return head + ">\n      <system-out>" + EscapeXml(check.detail) +
             "</system-out>\n    </testcase>\n";
    case Outcome::kNotRun:
      return head + ">\n      <skipped" + Attribute("message", check.detail) +
             "/>\n    </testcase>\n";
    case Outcome::kFailed:
      break;
  }
  return head + ">\n" + FailureElement(verdict, check) + "    </testcase>\n";
}

/// The checks, and one more where the difference belongs to none of them: a suite of a record that
/// is not equal must not pass.
std::vector<Check> Cases(const Verdict& verdict) {
  std::vector<Check> checks = verdict.checks;
  const bool told = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.outcome == Outcome::kFailed;
  });
  if (!told && verdict.exit_code() != 0) {
    checks.push_back({"difference", Outcome::kFailed, Summary(verdict)});
  }
  return checks;
}

}  // namespace

std::string RenderJunit(const Verdict& verdict, const std::string& tool_version) {
  const std::vector<Check> checks = Cases(verdict);
  const auto count = [&](auto matches) {
    return std::count_if(checks.begin(), checks.end(), matches);
  };
  const std::string totals =
      fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", checks.size(),
                  count([](const Check& c) { return c.outcome == Outcome::kFailed && !c.damage; }),
                  count([](const Check& c) { return c.outcome == Outcome::kFailed && c.damage; }),
                  count([](const Check& c) { return c.outcome == Outcome::kNotRun; }));
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += "<testsuites name=\"verbatim\"" + totals + ">\n";
  text += "  <testsuite" + Attribute("name", verdict.record) + totals + ">\n";
  text += Properties(verdict, tool_version);
  for (const Check& check : checks) text += Case(verdict, check);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace verbatim
