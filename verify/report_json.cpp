#include <bit>
#include <nlohmann/json.hpp>

#include "verify/report.h"
#include "verify/text.h"

namespace verbatim {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json DifferenceJson(const Difference& difference) {
  Json json;
  const bool is_step = difference.run == RunKind::kSteps;
  json["class"] = ToString(difference.kind);
  json["subnet"] = OrNull(difference.seq);
  if (is_step) json["step"] = OrNull(difference.seq);
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

Json CoverageJson(const Coverage& coverage) {
  Json json;
  json["description"] = coverage.description;
  json["subnets_recorded"] = coverage.recorded;
  json["subnets_selected"] = coverage.selected;
  json["subnets_executed"] = coverage.executed;
  json["stages"] = coverage.stages;
  json["in_flight"] = coverage.in_flight;
  json["detectable_share"] = OrNull(coverage.detectable_share);
  return json;
}

Json TensorJson(const TensorDifference& tensor) {
  Json json;
  json["layer_name"] = tensor.layer_name;
  json["op"] = tensor.op;
  json["phase"] = ToString(tensor.phase);
  json["tensor"] = tensor.tensor;
  json["shape"] = tensor.shape;
  json["index"] = tensor.index;
  json["left"] = FormatLoss(std::bit_cast<std::uint32_t>(tensor.left));
  json["right"] = FormatLoss(std::bit_cast<std::uint32_t>(tensor.right));
  json["elements"] = tensor.elements;
  json["elements_different"] = tensor.elements_different;
  json["largest_difference"] = FormatNumber(tensor.largest_difference, 9);
  return json;
}

Json ExplanationJson(const Verdict& verdict) {
  if (!verdict.explanation && verdict.explanation_obstacle.empty()) return nullptr;
  Json json;
  json["obstacle"] = verdict.explanation_obstacle;
  json["subnet"] = verdict.explanation ? Json(verdict.explanation->seq) : Json(nullptr);
  json["first_tensor"] = verdict.explanation && verdict.explanation->first
                             ? TensorJson(*verdict.explanation->first)
                             : Json(nullptr);
  json["left_reproduced"] =
      verdict.explanation ? Json(verdict.explanation->left_reproduced) : Json(nullptr);
  json["right_reproduced"] = verdict.explanation && !verdict.reference.empty()
                                 ? Json(verdict.explanation->right_reproduced)
                                 : Json(nullptr);
  return json;
}

Json RunJson(const Verdict& verdict) {
  Json json;
  json["name"] = verdict.spec_name;
  if (verdict.run.kind == RunKind::kSteps) json["kind"] = "steps";
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

Json SettingsJson(const std::vector<SettingDifference>& settings) {
  Json list = Json::array();
  for (const SettingDifference& setting : settings) {
    list.push_back({{"key", setting.key}, {"a", setting.a}, {"b", setting.b}});
  }
  return list;
}

const char* KindWord(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kVerify:
      return "verify";
    case VerdictKind::kReplay:
      return "replay";
    case VerdictKind::kDiff:
      break;
  }
  return "diff";
}

Json ComparisonJson(const Comparison& comparison) {
  Json json;
  json["subnets_compared"] = comparison.subnets_compared;
  json["is_prefix"] = comparison.is_prefix;
  json["subnets_equal"] = comparison.subnets_equal;
  json["accesses_compared"] = comparison.accesses_compared;
  json["accesses_different"] = comparison.accesses_different;
  json["origin_count"] = comparison.origin_count;
  json["origins"] = Json::array();
  for (const Difference& origin : comparison.origins) {
    json["origins"].push_back(DifferenceJson(origin));
  }
  json["tainted_count"] = comparison.tainted_count;
  json["tainted"] = Json::array();
  for (const SeqRange& range : comparison.tainted) {
    json["tainted"].push_back({range.first, range.last});
  }
  json["layers"] = Json::array();
  for (const LayerTaint& layer : comparison.layers) {
    json["layers"].push_back({{"layer", layer.layer},
                              {"layer_name", layer.name},
                              {"first_subnet", layer.first_seq},
                              {"accesses", layer.accesses}});
  }
  return json;
}

}  // namespace

std::string RenderJson(const Verdict& verdict, const std::string& tool_version) {
  Json json;
  json["format"] = "verbatim-verdict";
  json["version"] = 1;
  json["tool_version"] = tool_version;
  json["kind"] = KindWord(verdict.kind);
  json["record"] = verdict.record;
  json["reference"] = verdict.reference.empty() ? Json(nullptr) : Json(verdict.reference);
  json["verdict"] = VerdictWord(verdict);
  json["exit_code"] = verdict.exit_code();
  json["summary"] = Summary(verdict);
  json["run"] = RunJson(verdict);
  json["counts"] = CountsJson(verdict.counts);
  json["coverage"] = verdict.reexecuted ? CoverageJson(verdict.coverage) : Json(nullptr);
  json["environment_differences"] = EnvironmentJson(verdict.environment_differences);
  json["spec_differences"] = SettingsJson(verdict.spec_differences);
  json["layout_differences"] = SettingsJson(verdict.layout_differences);
  json["checks"] = ChecksJson(verdict.checks);
  json["first_difference"] =
      verdict.first_difference ? DifferenceJson(*verdict.first_difference) : Json(nullptr);
  json["trees_compared"] = verdict.trees_compared ? Json(*verdict.trees_compared) : Json(nullptr);
  json["comparison"] = verdict.comparison ? ComparisonJson(*verdict.comparison) : Json(nullptr);
  json["explanation"] = ExplanationJson(verdict);
  // Paths and messages may hold bytes that are no UTF-8; a report is written nevertheless.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace verbatim
