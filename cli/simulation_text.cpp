#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/simulation_views.h"
#include "verify/text.h"

namespace verbatim {
namespace {

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell; numbers end below each other.
std::string Table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], fmt::formatted_size("{}", row[i]));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("  {:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>{}}", row[i], widths[i]);
    text += "\n";
  }
  return text;
}

struct Unit {
  double size;
  const char* name;
};

/// In the largest unit that leaves at least one.
template <std::size_t N>
std::string InUnits(double value, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (value >= unit.size) return fmt::format("{:.3g} {}", value / unit.size, unit.name);
  }
  return fmt::format("{:.3g} {}", value / units.back().size, units.back().name);
}

std::int64_t ActivationPeak(const SimulationReport& report) {
  std::int64_t peak = 0;
  for (const StageUse& stage : report.stages) peak = std::max(peak, stage.activation_bytes);
  return peak;
}

std::int64_t WholeActivationPeak(const SimulationReport& report) {
  std::int64_t peak = 0;
  for (const StageUse& stage : report.stages) peak = std::max(peak, stage.whole_activation_bytes);
  return peak;
}

std::int64_t WeightPeak(const SimulationReport& report) {
  std::int64_t peak = 0;
  for (const StageUse& stage : report.stages) peak = std::max(peak, stage.weight_bytes);
  return peak;
}

/// Of the runs whose stages hold a part of the layers.
std::string DeviceMemoryTable(const SimulationStudy& study) {
  std::vector<Row> rows{{"policy", "stages", "device memory", "cache", "time", "hits", "stalled",
                         "for room", "loaded", "written back"}};
  for (const SimulationRun& run : study.runs) {
    const SimulationReport& report = run.report;
    if (!report.device_memory) continue;
    const DeviceMemoryUse& use = *report.device_memory;
    rows.push_back({run.setting.policy, FormatCount(run.setting.stages),
                    BytesText(run.setting.device_memory), run.setting.cache,
                    TimeText(study, report.makespan), PercentText(use.cache.HitRate()),
                    PercentText(report.ShareOf(use.MeanStall())),
                    PercentText(report.ShareOf(use.MeanStallForRoom())),
                    BytesText(use.cache.bytes_loaded), BytesText(use.cache.bytes_written)});
  }
  return rows.size() == 1 ? "" : "\n" + Table(rows);
}

std::string RunsTable(const SimulationStudy& study) {
  std::vector<Row> rows{{"policy", "stages", "partition", "micro-batches", "in flight", "time",
                         "speed-up", "at most", "idle", "activations", "weights", "violations"}};
  for (const SimulationRun& run : study.runs) {
    const SimulationReport& report = run.report;
    rows.push_back({run.setting.policy, FormatCount(run.setting.stages), run.setting.partition,
                    FormatCount(run.setting.microbatches), FormatCount(run.setting.in_flight),
                    TimeText(study, report.makespan), fmt::format("{:.2f}", report.speedup()),
                    fmt::format("{:.2f}", report.speedup_max()), PercentText(report.bubble()),
                    BytesText(ActivationPeak(report)), BytesText(WeightPeak(report)),
                    FormatCount(report.violations)});
    if (study.recomputes()) rows.back().insert(rows.back().begin() + 3, run.setting.recompute);
  }
  if (study.recomputes()) rows.front().insert(rows.front().begin() + 3, "recompute");
  return Table(rows);
}

std::string StagesTable(const SimulationStudy& study, const SimulationReport& report) {
  std::vector<Row> rows{
      {"stage", "busy", "forward", "backward", "update", "held", "activations", "weights"}};
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageUse& stage = report.stages[i];
    rows.push_back({fmt::format("{}", i), PercentText(report.BusyShare(stage)),
                    TimeText(study, stage.forward), TimeText(study, stage.backward),
                    TimeText(study, stage.update), FormatCount(stage.held_max),
                    BytesText(stage.activation_bytes), BytesText(stage.weight_bytes)});
  }
  return Table(rows);
}

std::string RecomputeText(const SimulationStudy& study, const SimulationReport& report) {
  const double more = report.work > 0 ? report.recompute / report.work : 0.0;
  return fmt::format(
      "computed again: {}, {} of the work; activations of a stage at most {} instead of {}\n",
      TimeText(study, report.recompute), PercentText(more), BytesText(ActivationPeak(report)),
      BytesText(WholeActivationPeak(report)));
}

std::string OneRunText(const SimulationStudy& study) {
  const SimulationReport& report = study.runs[0].report;
  std::string text = "\n" + StagesTable(study, report);
  text += fmt::format("\nmoved between stages: activations {}, gradients {}, versions {}\n",
                      BytesText(report.moved.activations), BytesText(report.moved.gradients),
                      BytesText(report.moved.versions));
  if (study.recomputes()) text += RecomputeText(study, report);
  text +=
      fmt::format("critical path of the causal graph: {}\n", TimeText(study, report.critical_path));
  text += fmt::format("layers of a subnet on a stage: {} on average; --device-memory at least {}\n",
                      BytesText(std::llround(report.part_bytes)),
                      BytesText(report.device_memory_least));
  return text;
}

}  // namespace

std::string TimeText(const SimulationStudy& study, double time) {
  constexpr std::array<Unit, 5> kUnits{
      {{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
  return InUnits(time * study.seconds_per_unit, kUnits);
}

std::int64_t Nanoseconds(const SimulationStudy& study, double time) {
  constexpr double kMax = 0x1p60;  // 36 years
  return std::llround(std::min(time * study.seconds_per_unit * 1e9, kMax));
}

std::string BytesText(std::int64_t bytes) {
  constexpr std::array<Unit, 5> kUnits{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  return InUnits(static_cast<double>(bytes), kUnits);
}

std::string PercentText(double share) {
  return fmt::format("{:.1f} %", 100.0 * share);
}

std::string CostsText(const SimulationStudy& study) {
  switch (study.costs) {
    case CostSource::kEqual:
      return fmt::format("equal costs, a block's forward takes {}", TimeText(study, 1.0));
    case CostSource::kAnalytic:
      return fmt::format("costs counted from shapes, {:.3g} operations a second",
                         1.0 / study.seconds_per_unit);
    case CostSource::kMeasured:
      return fmt::format("costs measured, {}", study.costs_text);
  }
  return "";
}

std::string StudyText(const SimulationStudy& study) {
  std::string text = fmt::format("Simulation of {}: {}, {}, sampler {}, {}\n{}\n\n{}", study.spec,
                                 FormatCount(study.blocks, "block", "blocks"),
                                 FormatCount(study.layers, "layer", "layers"), study.sampler,
                                 FormatCount(study.subnets, "subnet", "subnets"), CostsText(study),
                                 RunsTable(study));
  text += DeviceMemoryTable(study);
  if (study.runs.size() == 1) text += OneRunText(study);
  return text;
}

}  // namespace verbatim
