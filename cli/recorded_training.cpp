#include "cli/recorded_training.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <memory>

#include "base/digest.h"
#include "base/utc_time.h"
#include "cli/effective_spec.h"
#include "cli/head_options.h"
#include "cli/injected_fault.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/training_run.h"
#include "cli/version.h"
#include "recorder/recorded_checkpoints.h"
#include "recorder/recorder.h"
#include "store/checkpoint_files.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/stage_devices.h"
#include "trainer/training.h"
#include "verify/text.h"

namespace verbatim {
namespace {

RunInfo DescribeRun(const TrainRequest& request, const Experiment& experiment) {
  RunInfo run;
  run.tool_version = ToolVersion();
  run.spec_json = SpecToJson(experiment.spec);
  run.spec_folder = FolderOf(request.spec).string();
  run.command_line = request.command_line;
  run.policy = request.policy;
  run.record_level = ToString(experiment.spec.record_level);
  run.device = request.place ? request.place->device : NameOf(experiment.devices);
  run.stages = request.layout.stages;
  run.in_flight = request.layout.in_flight;
  run.partition = request.layout.partition;
  run.subnets_planned = experiment.spec.training.subnets;
  run.dataset_digest = experiment.dataset->digest();
  run.started_utc = UtcNow();
  return run;
}

Result<std::unique_ptr<Recorder>> StartRecorder(const TrainRequest& request,
                                                const Experiment& experiment,
                                                const InjectedFault& fault) {
  if (request.record_level == "off") return nullptr;
  auto environment = DescribeEnvironment(experiment.device, request.threads_per_stage);
  fault.AddTo(environment);
  ASSIGN_OR_RETURN(auto writer,
                   RecordWriter::Create(request.output, DescribeRun(request, experiment),
                                        environment, DescribeLayers(experiment), request.force));
  RecorderOptions options;
  ASSIGN_OR_RETURN(options.on_head, HeadKeeper(request.heads));
  options.head_every = request.heads.every;
  return Recorder::Start(std::move(writer), options);
}

/// Null where none are taken. What another record left under that name goes first: by now the new
/// one has taken its place.
Result<std::unique_ptr<RecordedCheckpoints>> StartCheckpoints(const TrainRequest& request,
                                                              Recorder* recorder) {
  if (!recorder) return nullptr;
  RETURN_IF_ERROR(RemoveCheckpoints(CheckpointFolder(request.output)));
  ASSIGN_OR_RETURN(const bool wanted, WantsCheckpoints(request.checkpoints, request.policy));
  if (!wanted) return nullptr;
  return RecordedCheckpoints::Open(request.output, *recorder, request.checkpoints.keep);
}

Result<TrainingOptions> OptionsOf(const TrainRequest& request, const Experiment& experiment) {
  TrainingOptions options;
  RETURN_IF_ERROR(SetLayout(request.layout, experiment, options));
  options.threads_per_stage = request.threads_per_stage;
  options.policy = request.policy;
  options.record_level = experiment.spec.record_level;
  options.stop_on_nan = request.stop_on_nan;
  return options;
}

/// Before anything is written: where the ranks do not come together, an earlier record stays.
Status JoinRanks(const TrainRequest& request, const Experiment& experiment,
                 TrainingOptions& options, RankSession& session) {
  if (!request.place) return {};
  ASSIGN_OR_RETURN(RankJob job, DescribeJob(experiment, options, request.layout.costs));
  job.is_observed = request.record_level != "off";
  ASSIGN_OR_RETURN(const bool wanted, WantsCheckpoints(request.checkpoints, request.policy));
  job.has_checkpoints = job.is_observed && wanted;
  job.checkpoint_every = request.checkpoints.every;
  RETURN_IF_ERROR(session.Lead(*request.place, job));
  options.network = session.network();
  options.has_stuck_stage = session.has_stuck_stage();
  return {};
}

}  // namespace

Status TrainAndRecord(const TrainRequest& request, RankSession& session) {
  ConfigureDeterminism();
  at::set_num_threads(static_cast<int>(request.threads_per_stage));
  ASSIGN_OR_RETURN(const Spec spec, EffectiveSpec(request));
  ASSIGN_OR_RETURN(const auto devices, ParseDevices(request.device, LocalRankOf(request.place)));
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, FolderOf(request.spec), request.data_folder, devices,
                                     HomeFor(request.layout.device_memory)));
  ASSIGN_OR_RETURN(TrainingOptions options, OptionsOf(request, experiment));
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  options.is_memory_checked = true;
  ASSIGN_OR_RETURN(InjectedFault fault, InjectedFault::Plan(request, experiment));
  options.probe = fault.probe();
  RETURN_IF_ERROR(JoinRanks(request, experiment, options, session));
  const StopSignals signals;
  ASSIGN_OR_RETURN(const auto recorder, StartRecorder(request, experiment, fault));
  options.observer = recorder.get();
  ASSIGN_OR_RETURN(const auto checkpoints, StartCheckpoints(request, recorder.get()));
  options.checkpoints.sink = checkpoints.get();
  options.checkpoints.every = request.checkpoints.every;
  TrainingSummary summary;
  const TrainingOutcome outcome =
      TrainAndEvaluate(experiment, options, signals, request.quiet, summary);
  if (recorder) {
    RETURN_IF_ERROR(recorder->Close(outcome.status, outcome.detail, summary.evaluations));
  }
  if (outcome.status == RunStatus::kFailed) {
    return Failed(fmt::format("the run failed after {}: {}",
                              FormatCount(outcome.subnets, "subnet", "subnets"), outcome.detail),
                  recorder
                      ? fmt::format("what finished is in {}: verbatim show {}",
                                    request.output.string(), ShellPath(request.output.string()))
                      : "");
  }
  RETURN_IF_ERROR(fault.DamageRecord(request.output, outcome.subnets));
  if (request.quiet) return {};
  return WriteToStdout(
      DescribeTraining(options, outcome, summary) + fault.Describe() +
      (recorder ? DescribeRecord(request.output, outcome.status, checkpoints.get()) : ""));
}

std::filesystem::path FolderOf(const std::filesystem::path& spec_file) {
  return std::filesystem::absolute(spec_file).parent_path().lexically_normal();
}

}  // namespace verbatim
