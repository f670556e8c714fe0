#include "cli/worker.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/digest.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "supernet/costs.h"
#include "trainer/experiment.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

/// Its own data set must be the one that rank 0 records.
Status CheckDataset(const RankJob& job, const Experiment& experiment) {
  const std::string digest = ToHex(experiment.dataset->digest());
  if (job.dataset_digest.empty() || job.dataset_digest == digest) return {};
  return BadInput(fmt::format("the data set here is another one than rank 0's: digest {} instead "
                              "of {}",
                              digest, job.dataset_digest),
                  "Let all ranks read the same files; --data DIR says where they are here.");
}

Result<Experiment> Prepare(const RankJob& job, const WorkRequest& request) {
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(job.spec_json, "the spec of rank 0"));
  ASSIGN_OR_RETURN(const auto devices, ParseDevices(job.device, request.place.rank.local));
  ASSIGN_OR_RETURN(
      Experiment experiment,
      PrepareExperiment(spec, request.spec_folder.value_or(std::filesystem::path(job.spec_folder)),
                        request.data_folder, devices, HomeFor(job.device_memory)));
  RETURN_IF_ERROR(CheckDataset(job, experiment));
  return experiment;
}

Result<TrainingOptions> OptionsOf(const RankJob& job, const Experiment& experiment) {
  TrainingOptions options;
  options.stages = job.stages;
  options.in_flight = job.in_flight;
  options.threads_per_stage = job.threads_per_stage;
  options.partition = job.partition;
  options.recompute = job.recompute;
  options.device_memory = job.device_memory;
  if (!job.costs_json.empty()) {
    ASSIGN_OR_RETURN(options.costs, ParseCosts(job.costs_json, "the cost file of rank 0",
                                               experiment.space, experiment.spec));
  }
  options.sequence = job.sequence;
  options.first = job.first;
  options.begin_ns = job.begin_ns;
  options.policy = job.policy;
  ASSIGN_OR_RETURN(options.record_level, RecordLevelFromString(job.record_level));
  options.stop_on_nan = job.stop_on_nan;
  options.is_observed = job.is_observed;
  options.has_checkpoints = job.has_checkpoints;
  options.checkpoints.every = job.checkpoint_every;
  options.sends_layers = job.sends_layers;
  return options;
}

/// Trains with the rank's part kept, where it is to be.
Result<TrainingOutcome> TrainAndKeep(const RankJob& job, const WorkRequest& request,
                                     Experiment& experiment, TrainingOptions options) {
  if (!request.part || !job.is_observed) return Train(experiment, options);
  ASSIGN_OR_RETURN(RankPart part,
                   RankPart::Begin(*request.part, job.spec_json, options.network->rank(),
                                   options.network->ranks()));
  options.parts = &part.sink();
  Result<TrainingOutcome> outcome = Train(experiment, options);
  const RunStatus status = outcome ? outcome->status : RunStatus::kFailed;
  const Result<std::string> told = part.End(status);
  // A run that failed says why; it may be this.
  if (!told && status != RunStatus::kFailed) return tl::unexpected(told.error());
  if (told && !told->empty()) fmt::print(stderr, "verbatim: {}\n", ForTerminal(*told));
  return outcome;
}

Status TrainPart(const RankJob& job, const WorkRequest& request, RankSession& session) {
  at::set_num_threads(static_cast<int>(job.threads_per_stage));
  ASSIGN_OR_RETURN(Experiment experiment, Prepare(job, request));
  ASSIGN_OR_RETURN(TrainingOptions options, OptionsOf(job, experiment));
  options.network = session.network();
  options.has_stuck_stage = session.has_stuck_stage();
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  options.is_memory_checked = true;
  const StopSignals signals;
  options.stop = &signals.requested();
  ASSIGN_OR_RETURN(const TrainingOutcome outcome, TrainAndKeep(job, request, experiment, options));
  if (outcome.status != RunStatus::kFailed) return {};
  return Failed(fmt::format("the run failed: {}", outcome.detail));
}

}  // namespace

Status WorkForRankZero(const WorkRequest& request, RankSession& session) {
  ASSIGN_OR_RETURN(const auto job, session.Follow(request.place));
  if (!job) return {};
  const Status done = TrainPart(*job, request, session);
  session.Leave(done ? "" : done.error().message);
  return done;
}

}  // namespace verbatim
