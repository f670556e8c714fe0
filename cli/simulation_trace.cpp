#include <fmt/format.h>

#include <map>

#include "cli/simulation_views.h"
#include "cli/version.h"
#include "verify/trace_writer.h"

namespace verbatim {
namespace {

Phase PhaseOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
      return Phase::kForward;
    case TaskKind::kBackward:
      return Phase::kBackward;
    case TaskKind::kUpdate:
      return Phase::kUpdate;
  }
  return Phase::kForward;
}

/// The timeline as a record would hold it, by seq.
std::map<std::int64_t, SubnetRow> RowsOf(const SimulationStudy& study,
                                         const SimulationReport& report) {
  std::map<std::int64_t, SubnetRow> rows;
  for (const SimulatedTask& task : report.timeline) {
    SubnetRow& row = rows[task.task.seq];
    row.seq = task.task.seq;
    row.activities.push_back({.stage = task.stage,
                              .microbatch = task.task.microbatch,
                              .phase = PhaseOf(task.task.kind),
                              .begin_ns = Nanoseconds(study, task.begin),
                              .end_ns = Nanoseconds(study, task.end)});
  }
  for (const SimulatedAccess& access : report.timeline_accesses) {
    rows[access.seq].accesses.push_back({.layer = access.layer,
                                         .read_seq = access.read,
                                         .base_seq = access.base,
                                         .stage = access.stage});
  }
  return rows;
}

}  // namespace

Status WriteStudyTrace(const SimulationStudy& study, const TextSink& write) {
  const SimulationRun& run = study.runs.at(0);
  TraceWriter trace(write);
  RETURN_IF_ERROR(trace.Begin({fmt::format("simulation of {}", study.spec),
                               run.setting.stages,
                               {{"spec", study.spec},
                                {"tool_version", ToolVersion()},
                                {"policy", run.setting.policy},
                                {"costs", study.costs_text}}}));
  for (const auto& [seq, row] : RowsOf(study, run.report)) {
    RETURN_IF_ERROR(trace.Add(row, /*has_loss=*/false));
  }
  return trace.End();
}

}  // namespace verbatim
