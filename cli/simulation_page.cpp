#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "cli/json_text.h"
#include "cli/simulation_views.h"
#include "cli/version.h"
#include "verify/html/assets.h"
#include "verify/html/html_text.h"
#include "verify/markup.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr std::size_t kBarsMax = 2000;    ///< of a timeline
constexpr std::size_t kTimelinesMax = 8;  ///< of a page

Json Rounded(double value) {
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

/// What tells a run from the others.
std::string NameOf(const SimulationStudy& study, const SimulationRun& run) {
  if (study.swept.empty()) return "policy " + run.setting.policy;
  std::string name;
  for (const std::string& key : study.swept) {
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", key, ValueOf(run.setting, key));
  }
  return name;
}

/// The swept values but the first key's.
std::string SeriesOf(const SimulationStudy& study, const SimulationRun& run) {
  std::string name;
  for (std::size_t i = 1; i < study.swept.size(); ++i) {
    name += fmt::format("{}{} {}", i == 1 ? "" : ", ", study.swept[i],
                        ValueOf(run.setting, study.swept[i]));
  }
  return name;
}

Json SweepJson(const SimulationStudy& study) {
  Json series = Json::object();
  for (const SimulationRun& run : study.runs) {
    series[SeriesOf(study, run)].push_back({ValueOf(run.setting, study.swept[0]),
                                            Rounded(run.report.speedup()),
                                            Rounded(run.report.speedup_max())});
  }
  Json json;
  json["key"] = study.swept[0];
  json["series"] = Json::array();
  for (const auto& item : series.items()) {
    json["series"].push_back({{"name", item.key()}, {"points", item.value()}});
  }
  return json;
}

/// The tasks of the timeline up to the instant at which there would be too many to draw.
Json TimelineJson(const SimulationStudy& study, const SimulationReport& report) {
  const auto& tasks = report.timeline;
  const std::size_t shown = std::min(tasks.size(), kBarsMax);
  const std::int64_t begin = Nanoseconds(study, tasks.front().begin);
  std::int64_t end = begin;
  for (const SimulatedTask& task : tasks) end = std::max(end, Nanoseconds(study, task.end));
  if (shown < tasks.size()) end = Nanoseconds(study, tasks[shown].begin);
  Json json;
  json["begin_ns"] = begin;
  json["length_ns"] = std::max<std::int64_t>(1, end - begin);
  json["stages"] = report.stages.size();
  json["bars"] = Json::array();
  std::vector<double> busy(report.stages.size(), 0.0);
  for (std::size_t i = 0; i < shown; ++i) {
    const SimulatedTask& task = tasks[i];
    const std::int64_t from = Nanoseconds(study, task.begin);
    const std::int64_t to = std::min(end, Nanoseconds(study, task.end));
    busy[task.stage] += static_cast<double>(to - from) / json["length_ns"].get<double>();
    json["bars"].push_back({task.stage, from - begin, to - begin, static_cast<int>(task.task.kind),
                            task.task.seq, task.task.microbatch});
  }
  json["busy"] = Json::array();
  for (const double share : busy) json["busy"].push_back(Rounded(share));
  json["focus"] = nullptr;
  return json;
}

std::size_t TimelinesOf(const SimulationStudy& study) {
  return std::min(study.runs.size(), kTimelinesMax);
}

Json ChartsJson(const SimulationStudy& study) {
  Json json;
  json["sweep"] = study.swept.empty() ? Json(nullptr) : SweepJson(study);
  for (std::size_t i = 0; i < TimelinesOf(study); ++i) {
    const SimulationReport& report = study.runs[i].report;
    if (!report.timeline.empty()) {
      json[fmt::format("timeline-{}", i)] = TimelineJson(study, report);
    }
  }
  return json;
}

/// JSON that may stand inside <script>.
std::string ScriptText(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos;) {
    text.replace(at, 2, "<\\/");
  }
  return text;
}

std::string RunsTable(const SimulationStudy& study) {
  std::vector<std::string> heads{"policy", "stages",   "partition", "micro-batches", "in flight",
                                 "time",   "speed-up", "at most",   "idle",          "violations"};
  if (study.recomputes()) heads.insert(heads.begin() + 3, "recompute");
  std::string rows;
  for (const SimulationRun& run : study.runs) {
    const SimulationReport& report = run.report;
    std::vector<std::string> cells{EscapeXml(run.setting.policy),
                                   FormatCount(run.setting.stages),
                                   EscapeXml(run.setting.partition),
                                   FormatCount(run.setting.microbatches),
                                   FormatCount(run.setting.in_flight),
                                   TimeText(study, report.makespan),
                                   fmt::format("{:.2f}", report.speedup()),
                                   fmt::format("{:.2f}", report.speedup_max()),
                                   PercentText(report.bubble()),
                                   FormatCount(report.violations)};
    if (study.recomputes()) cells.insert(cells.begin() + 3, EscapeXml(run.setting.recompute));
    rows += RowHtml(cells);
  }
  return TableHtml("Runs", heads, rows);
}

std::string DeviceMemoryHtml(const SimulationStudy& study) {
  std::string rows;
  for (const SimulationRun& run : study.runs) {
    if (!run.report.device_memory) continue;
    const SimulationReport& report = run.report;
    const DeviceMemoryUse& use = *report.device_memory;
    rows += RowHtml({EscapeXml(run.setting.policy), FormatCount(run.setting.stages),
                     BytesText(run.setting.device_memory), EscapeXml(run.setting.cache),
                     TimeText(study, report.makespan), PercentText(use.cache.HitRate()),
                     PercentText(report.ShareOf(use.MeanStall())),
                     PercentText(report.ShareOf(use.MeanStallForRoom())),
                     BytesText(use.cache.bytes_loaded), BytesText(use.cache.bytes_written)});
  }
  if (rows.empty()) return "";
  return SectionHtml("memory", "Device memory",
                     TableHtml("Layers on stages that hold a part of them",
                               {"policy", "stages", "device memory", "cache", "time", "hits",
                                "stalled", "of that for room", "loaded", "written back"},
                               rows));
}

std::string StagesTable(const SimulationStudy& study, const SimulationReport& report) {
  std::string rows;
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageUse& stage = report.stages[i];
    rows += RowHtml({fmt::format("{}", i), PercentText(report.BusyShare(stage)),
                     TimeText(study, stage.forward), TimeText(study, stage.backward),
                     TimeText(study, stage.update), FormatCount(stage.held_max),
                     BytesText(stage.activation_bytes), BytesText(stage.weight_bytes)});
  }
  return TableHtml("Stages over the whole run",
                   {"stage", "busy", "forward", "backward", "update", "micro-batches held",
                    "activations", "weights"},
                   rows);
}

std::string Legend(std::string_view css_class, std::string_view text) {
  return fmt::format("<li><span class=\"swatch {}\" aria-hidden=\"true\"></span>{}</li>", css_class,
                     text);
}

std::string SweepHtml(const SimulationStudy& study) {
  if (study.swept.empty()) return "";
  const std::string legend =
      "<ul class=\"legend\" aria-label=\"Legend\">" + Legend("line record", "speed-up") +
      Legend("line reference", "at most, in any causal order, dashed") + "</ul>\n";
  const std::string caption = fmt::format(
      "Speed-up over one stage by {}. No causal schedule passes the dashed line: the critical path "
      "of the causal graph, or the number of stages.",
      study.swept[0]);
  return SectionHtml(
      "sweep", "Sweep",
      FigureHtml("sweep", "Line chart of the speed-up", legend, caption, RunsTable(study)));
}

std::string TimelineHtml(const SimulationStudy& study, std::size_t index) {
  const SimulationRun& run = study.runs[index];
  const SimulationReport& report = run.report;
  if (report.timeline.empty()) return "";
  const std::string legend = "<ul class=\"legend\" aria-label=\"Legend\">" +
                             Legend("forward", "forward") +
                             Legend("backward", "backward, hatched") + Legend("update", "update") +
                             Legend("idle", "idle") + "</ul>\n";
  const std::string caption = fmt::format(
      "{}: speed-up {:.2f}, idle {}. Tasks of subnets {} and on; the share at the right is how "
      "much of this window they kept the stage busy.",
      NameOf(study, run), report.speedup(), PercentText(report.bubble()),
      report.timeline.front().task.seq);
  const std::string chart = fmt::format("timeline-{}", index);
  return FigureHtml(chart, "Timeline of the tasks of each stage, " + NameOf(study, run), legend,
                    caption, StagesTable(study, report));
}

std::string TimelinesHtml(const SimulationStudy& study) {
  std::string figures;
  for (std::size_t i = 0; i < TimelinesOf(study); ++i) figures += TimelineHtml(study, i);
  if (TimelinesOf(study) < study.runs.size()) {
    figures += fmt::format("<p class=\"note\">The first {} of {} runs are drawn.</p>\n",
                           TimelinesOf(study), study.runs.size());
  }
  return figures.empty() ? "" : SectionHtml("timeline", "Stages", figures);
}

std::string HeadlineHtml(const SimulationStudy& study) {
  const auto best = std::max_element(study.runs.begin(), study.runs.end(),
                                     [](const SimulationRun& a, const SimulationRun& b) {
                                       return a.report.speedup() < b.report.speedup();
                                     });
  std::string text =
      fmt::format("Speed-up {:.2f} with {}", best->report.speedup(), NameOf(study, *best));
  if (best->report.violations > 0) text += ", which breaks causality";
  return fmt::format(
      "<p class=\"verdict\">{}</p>\n<p class=\"summary\">{}; {}.</p>\n", EscapeXml(text),
      EscapeXml(fmt::format("{} of {}, sampler {}", FormatCount(study.subnets, "subnet", "subnets"),
                            FormatCount(study.blocks, "block", "blocks"), study.sampler)),
      EscapeXml(CostsText(study)));
}

}  // namespace

std::string StudyHtml(const SimulationStudy& study) {
  std::string contents;
  if (!study.swept.empty()) contents += "<li><a href=\"#sweep\">Sweep</a></li>";
  contents += "<li><a href=\"#runs\">Runs</a></li>";
  const std::string memory = DeviceMemoryHtml(study);
  if (!memory.empty()) contents += "<li><a href=\"#memory\">Device memory</a></li>";
  const std::string timelines = TimelinesHtml(study);
  if (!timelines.empty()) contents += "<li><a href=\"#timeline\">Stages</a></li>";
  return FillTemplate(ReportTemplate(),
                      {{"title", EscapeXml(fmt::format("{}: simulation", study.spec))},
                       {"style", std::string(ReportStyle())},
                       {"subject", EscapeXml(study.spec)},
                       {"name", EscapeXml(study.name)},
                       {"contents", contents},
                       {"verdict", HeadlineHtml(study)},
                       {"body", SweepHtml(study) + SectionHtml("runs", "Runs", RunsTable(study)) +
                                    memory + timelines},
                       {"version", EscapeXml(ToolVersion())},
                       {"data", ScriptText(ChartsJson(study))},
                       {"d3", std::string(D3Script())},
                       {"script", std::string(ReportScript())}});
}

}  // namespace verbatim
