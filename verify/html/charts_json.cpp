#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "verify/html/html_charts.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using Json = nlohmann::ordered_json;

/// With seven digits, which a float32 has and a screen does not need more of.
Json Rounded(double value) {
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

Json FocusJson(const Verdict& verdict) {
  const bool has_seq = verdict.first_difference && verdict.first_difference->seq;
  return has_seq ? Json(*verdict.first_difference->seq) : Json(nullptr);
}

Json CurveJson(const char* name, const LossCurve& curve) {
  Json json;
  json["name"] = name;
  json["points"] = Json::array();
  for (const LossPoint& point : curve.points) {
    json["points"].push_back({point.seq, Rounded(point.loss)});
  }
  json["windows"] = Json::array();
  for (const LossWindow& window : curve.windows) {
    json["windows"].push_back({window.first, window.last, Rounded(window.lowest),
                               Rounded(window.mean), Rounded(window.highest)});
  }
  return json;
}

Json LossJson(const Verdict& verdict, const ReportData& data) {
  if (data.losses.points.empty()) return nullptr;
  const auto [record, reference] = RecordNames(verdict);
  Json json;
  json["record"] = CurveJson(record, data.losses);
  json["reference"] =
      data.reference_losses ? CurveJson(reference, *data.reference_losses) : Json(nullptr);
  json["focus"] = FocusJson(verdict);
  return json;
}

Json TimelineJson(const Verdict& verdict, const StageTimeline& timeline) {
  if (timeline.bars.empty()) return nullptr;
  Json json;
  json["begin_ns"] = timeline.begin_ns;
  json["length_ns"] = timeline.length_ns();
  json["stages"] = timeline.busy.size();
  json["bars"] = Json::array();
  for (const TimelineBar& bar : timeline.bars) {
    json["bars"].push_back({bar.task.stage, bar.task.begin_ns - timeline.begin_ns,
                            bar.task.end_ns - timeline.begin_ns, static_cast<int>(bar.task.phase),
                            bar.seq, bar.task.microbatch});
  }
  json["busy"] = Json::array();
  for (const StageBusy& busy : timeline.busy) {
    json["busy"].push_back(
        Rounded(static_cast<double>(busy.total_ns()) / static_cast<double>(timeline.length_ns())));
  }
  json["focus"] = FocusJson(verdict);
  return json;
}

Json MapJson(const Verdict& verdict, const ReportData& data) {
  if (!verdict.comparison || verdict.comparison->map.cells.empty()) return nullptr;
  const EqualityMap& map = verdict.comparison->map;
  std::vector<std::string> names = map.names.empty() ? PositionNames(data.layers) : map.names;
  names.resize(static_cast<std::size_t>(map.positions));
  std::string cells;
  for (const Equality cell : map.cells) cells += static_cast<char>('0' + static_cast<int>(cell));
  Json json;
  json["positions"] = names;
  json["subnets_per_column"] = map.subnets_per_column;
  json["subnets"] = verdict.comparison->subnets_compared;
  json["cells"] = cells;
  if (verdict.run.kind == RunKind::kSteps) json["word"] = "compared step";
  return json;
}

Json GraphJson(const ReportData& data) {
  if (!data.neighbourhood || data.neighbourhood->nodes.empty()) return nullptr;
  Json json;
  json["nodes"] = Json::array();
  for (const NeighbourNode& node : data.neighbourhood->nodes) {
    json["nodes"].push_back({node.seq, node.level, static_cast<int>(node.equality)});
  }
  json["edges"] = Json::array();
  for (const NeighbourEdge& edge : data.neighbourhood->edges) {
    json["edges"].push_back({edge.from, edge.to, edge.layers});
  }
  return json;
}

}  // namespace

std::string ChartsJson(const Verdict& verdict, const ReportData& data) {
  Json json;
  if (verdict.run.kind == RunKind::kSteps) json["word"] = "step";
  json["loss"] = LossJson(verdict, data);
  json["timeline"] = TimelineJson(verdict, data.timeline);
  json["map"] = MapJson(verdict, data);
  json["graph"] = GraphJson(data);
  std::string text;
  // Only strings can hold a '<': as an escape it cannot end the script or begin a comment.
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace verbatim
