#include "cli/reexecution.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/utc_time.h"
#include "cli/data_option.h"
#include "cli/forward.h"
#include "cli/json_text.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "replay/recording_sink.h"
#include "verify/comparator.h"
#include "verify/confidence.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

Coverage CoverageOf(const ReplayPlan& plan, const ReexecutionRequest& request) {
  Coverage coverage;
  coverage.recorded = plan.recorded;
  coverage.selected = std::ssize(plan.selected);
  coverage.executed = std::ssize(plan.subnets);
  coverage.description = plan.description;
  coverage.stages = request.layout.stages;
  coverage.in_flight = request.layout.in_flight;
  if (request.selection.draw && !plan.is_whole()) {
    coverage.detectable_share = DetectableShare(plan.recorded, coverage.selected);
  }
  return coverage;
}

/// The head row of a record of the re-execution.
RunInfo DescribeReplay(const RunInfo& run, const ReexecutionRequest& request,
                       const Invocation& invocation) {
  RunInfo replay = run;
  replay.tool_version = ToolVersion();
  replay.command_line = invocation.command_line;
  replay.policy = request.layout.is_sequential_reference() ? "sequential" : "causal";
  if (!request.record_level.empty()) replay.record_level = request.record_level;
  replay.stages = request.layout.stages;
  replay.in_flight = request.layout.in_flight;
  replay.partition = request.layout.partition;
  replay.started_utc = UtcNow();
  return replay;
}

Status Execute(const RunInfo& run, const ReexecuteOptions& options,
               const ReexecutionRequest& request, const Invocation& invocation,
               Comparator& comparator) {
  if (request.output.empty())
    return invocation.engine->Reexecute(run, options, request.place, comparator);
  RecordingSink recording(request.output, DescribeReplay(run, request, invocation), request.force,
                          comparator);
  const Status executed = invocation.engine->Reexecute(run, options, request.place, recording);
  const Status closed =
      recording.Close(comparator.difference() ? "stopped at a difference" : "stopped on request");
  return executed ? closed : executed;
}

}  // namespace

Verdict Examine(const RecordReader& reader, const std::string& record,
                const Invocation& invocation) {
  ProgressBar progress("verifying", reader.SubnetCount().value_or(0), false, invocation.no_color);
  return ExamineRecord(reader, record, [&](std::int64_t done) { progress.Update(done); });
}

std::optional<Numerics> RecordedNumerics(const RecordReader& reader) {
  const auto run = reader.Run();
  if (!run) return std::nullopt;
  const auto spec = ParseSpec(run->spec_json, "the recorded spec");
  return spec ? std::optional(spec->numerics) : std::nullopt;
}

Status SettleRecordedDevice(const RecordReader& reader, std::optional<RankPlace>& place) {
  if (!place) return {};
  const auto run = reader.Run();
  // What cannot be read is told by whoever examines the record. Which GPU it was is no matter.
  return run ? SettleDevice(run->device.starts_with("cuda") ? "cuda" : "cpu", *place) : Status{};
}

std::string DescribeRecordTask(const std::string& command) {
  return Json{{"command", command}}.dump();
}

Result<int> WorkOnRecord(std::optional<RankPlace> place, const std::string& command,
                         const std::filesystem::path& record,
                         const std::optional<std::filesystem::path>& data,
                         const std::optional<RankPartRequest>& part, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckDataFolder(data));
  {
    // Closed again before rank 0 may write to it.
    ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(record));
    place->numerics = RecordedNumerics(*reader).value_or(Numerics::kNative);
    RETURN_IF_ERROR(SettleRecordedDevice(*reader, place));
  }
  if (NeedsForward(invocation, place->numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, place->numerics));
  }
  place->task_json = DescribeRecordTask(command);
  RETURN_IF_ERROR(invocation.engine->Work({*place, std::nullopt, data, part}));
  return 0;
}

void SayNotReexecuted(Verdict& verdict) {
  for (Check& check : verdict.checks) {
    if (check.name == kCheckReexecution) check.detail = "the record is damaged";
  }
}

Status ReexecuteAndCompare(const RecordReader& reader, const ReexecutionRequest& request,
                           const Invocation& invocation, Verdict& verdict) {
  ASSIGN_OR_RETURN(const ReplayPlan plan,
                   PlanReplay(reader, verdict.counts.subnets_audited, request.selection));
  verdict.coverage = CoverageOf(plan, request);
  if (request.announce) fmt::print(stderr, "re-executing {}\n", plan.description);
  ASSIGN_OR_RETURN(const auto evaluations, reader.Evaluations());
  ASSIGN_OR_RETURN(const auto environment, reader.Environment());
  ReexecuteOptions options;
  options.data_folder = request.data;
  ASSIGN_OR_RETURN(options.threads_per_stage, RecordedThreads(environment));
  options.stages = request.layout.stages;
  options.in_flight = request.layout.in_flight;
  options.partition = request.layout.partition;
  options.cost_file = request.layout.costs;
  options.recompute = request.layout.recompute;
  options.local = LocalRankOf(request.place);
  options.device_memory = request.layout.device_memory;
  options.record_level = request.record_level;
  options.subnets = plan.subnets;
  options.evaluate =
      plan.is_whole() && plan.recorded == verdict.counts.subnets_planned && !evaluations.empty();
  ProgressBar progress("re-executing", std::ssize(plan.subnets), false, invocation.no_color);
  Comparator::Options comparing;
  comparing.keep_going = request.keep_going;
  comparing.any_environment = request.any_environment;
  comparing.progress = [&](std::int64_t done) { progress.Update(done); };
  ASSIGN_OR_RETURN(Comparator comparator,
                   Comparator::Create(reader, request.record.string(), std::move(comparing)));
  RETURN_IF_ERROR(Execute(verdict.run, options, request, invocation, comparator));
  RETURN_IF_ERROR(comparator.status());
  comparator.AddTo(verdict);
  return {};
}

void AddReexecutionOptions(CLI::App& command, ReexecutionRequest& request) {
  AddDataOption(command, request.data);
  command.add_flag("--any-environment", request.any_environment,
                   "Compares although this machine's numeric environment is not the recorded one, "
                   "where bits may differ for that reason alone. Example: --any-environment");
  AddRankOptions(command, request.ranks);
}

}  // namespace verbatim
