#include "verify/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "verify/text.h"

namespace verbatim {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string SubnetsAndAccesses(std::int64_t subnets, std::int64_t accesses) {
  return FormatCount(subnets, "subnet", "subnets") + ", " +
         FormatCount(accesses, "access", "accesses");
}

const char* Word(const Verdict& verdict) {
  if (verdict.damaged) return "damaged";
  if (verdict.first_difference) return "different";
  const Counts& counts = verdict.counts;
  const bool whole = counts.subnets_reexecuted > 0 && counts.subnets_reexecuted == counts.subnets;
  return whole ? "equal" : "intact";
}

std::string Place(const Difference& difference) {
  std::string place;
  if (difference.seq) {
    place = fmt::format("subnet {}", *difference.seq);
  } else {
    place = difference.after_last ? "after the last subnet" : "before the first subnet";
  }
  if (difference.layer) place += fmt::format(", layer {}", difference.layer_name);
  if (difference.phase) place += fmt::format(", {}", ToString(*difference.phase));
  return place;
}

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
      Place(difference), ToString(difference.kind), difference.what, difference.recorded,
      difference.expected, difference.cause, difference.next_command);
}

std::string EqualText(const Verdict& verdict) {
  const std::int64_t equal = verdict.counts.subnets_reexecuted;
  if (equal == 0) return "intact, no subnet to re-execute";
  if (equal < verdict.counts.subnets) {
    return fmt::format("intact and causal, the first {} equal to the sequential reference",
                       FormatCount(equal));
  }
  return verdict.run.record_level == "losses"
             ? "equal to the sequential reference in every loss (weights are not recorded)"
             : "equal to the sequential reference";
}

Json DifferenceJson(const Difference& difference) {
  Json json;
  json["class"] = ToString(difference.kind);
  json["subnet"] = OrNull(difference.seq);
  json["layer"] = OrNull(difference.layer);
  json["layer_name"] = difference.layer ? Json(difference.layer_name) : Json(nullptr);
  json["phase"] = difference.phase ? Json(ToString(*difference.phase)) : Json(nullptr);
  json["what"] = difference.what;
  json["recorded"] = difference.recorded;
  json["expected"] = difference.expected;
  json["cause"] = difference.cause;
  json["next_command"] = difference.next_command;
  return json;
}

Json CountsJson(const Counts& counts) {
  Json json;
  json["subnets_planned"] = counts.subnets_planned;
  json["subnets"] = counts.subnets;
  json["accesses"] = counts.accesses;
  json["subnets_audited"] = counts.subnets_audited;
  json["accesses_audited"] = counts.accesses_audited;
  json["violations"] = counts.violations;
  json["subnets_with_violations"] = counts.subnets_with_violations;
  json["subnets_reexecuted"] = counts.subnets_reexecuted;
  return json;
}

Json RunJson(const Verdict& verdict) {
  Json json;
  json["name"] = verdict.spec_name;
  json["status"] = ToString(verdict.run.status);
  json["status_detail"] = verdict.run.status_detail;
  json["policy"] = verdict.run.policy;
  json["stages"] = verdict.run.stages;
  json["in_flight"] = verdict.run.in_flight;
  json["device"] = verdict.run.device;
  json["record_level"] = verdict.run.record_level;
  json["tool_version"] = verdict.run.tool_version;
  return json;
}

Json ChecksJson(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    Json json;
    json["name"] = check.name;
    json["outcome"] = ToString(check.outcome);
    json["detail"] = check.detail;
    json["problems"] = check.problems;
    json["problem_count"] = check.problem_count;
    list.push_back(std::move(json));
  }
  return list;
}

Json EnvironmentJson(const std::vector<EnvironmentDifference>& differences) {
  Json list = Json::array();
  for (const EnvironmentDifference& difference : differences) {
    Json json;
    json["key"] = difference.key;
    json["recorded"] = difference.recorded;
    json["here"] = difference.here;
    json["numeric"] = difference.numeric;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string IncompleteText(const RunInfo& run, std::int64_t subnets) {
  const std::string count = fmt::format("{} of {}", FormatCount(subnets),
                                        FormatCount(run.subnets_planned, "subnet", "subnets"));
  switch (run.status) {
    case RunStatus::kComplete:
      return "";
    case RunStatus::kRunning:
      return fmt::format("never closed (still running, or killed) at {}", count);
    case RunStatus::kInterrupted:
      return fmt::format("interrupted after {}", count);
    case RunStatus::kFailed:
      break;
  }
  const std::string why = run.status_detail.empty() ? "" : ": " + run.status_detail;
  return fmt::format("failed after {}{}", count, why);
}

std::string Summary(const Verdict& verdict) {
  const Counts& counts = verdict.counts;
  if (verdict.damaged) return "the record is damaged";
  if (verdict.first_difference) {
    return fmt::format("{}: not equal to the sequential reference, first {}{} ({})",
                       SubnetsAndAccesses(counts.subnets, counts.accesses),
                       verdict.first_difference->seq ? "at " : "", Place(*verdict.first_difference),
                       ToString(verdict.first_difference->kind));
  }
  return fmt::format(
      "{}: {}", SubnetsAndAccesses(counts.subnets_audited, counts.accesses_audited),
      verdict.reexecuted ? EqualText(verdict) : "intact and causal (not re-executed)");
}

std::string RenderText(const Verdict& verdict) {
  std::string text = fmt::format("Record {}{}{}\n\n", verdict.record,
                                 verdict.spec_name.empty() ? "" : ": ", verdict.spec_name);
  text += EnvironmentText(verdict);
  for (const Check& check : verdict.checks) text += CheckText(check);
  if (verdict.first_difference) text += DifferenceText(*verdict.first_difference);
  text += "\n";
  const std::string incomplete = IncompleteText(verdict.run, verdict.counts.subnets);
  if (!incomplete.empty() && !verdict.damaged) {
    const bool failed = verdict.run.status == RunStatus::kFailed;
    text += fmt::format("The run {}{}.\nThis verdict is about what is recorded.\n",
                        failed ? "" : "was ", incomplete);
  }
  return text + Summary(verdict) + "\n";
}

std::string RenderJson(const Verdict& verdict, const std::string& tool_version) {
  Json json;
  json["format"] = "verbatim-verdict";
  json["version"] = 1;
  json["tool_version"] = tool_version;
  json["record"] = verdict.record;
  json["verdict"] = Word(verdict);
  json["exit_code"] = verdict.exit_code();
  json["summary"] = Summary(verdict);
  json["run"] = RunJson(verdict);
  json["counts"] = CountsJson(verdict.counts);
  json["environment_differences"] = EnvironmentJson(verdict.environment_differences);
  json["checks"] = ChecksJson(verdict.checks);
  json["first_difference"] =
      verdict.first_difference ? DifferenceJson(*verdict.first_difference) : Json(nullptr);
  // Paths and messages may hold bytes that are no UTF-8; a report is written nevertheless.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace verbatim
