#include "trainer/training.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/check.h"
#include "schedule/partition.h"
#include "schedule/placement.h"
#include "schedule/policy.h"
#include "schedule/recompute.h"
#include "trainer/pipeline.h"
#include "trainer/ranks/network.h"

namespace verbatim {
namespace {

std::atomic<bool> has_stuck_stage = false;

Result<Placement> PlacementOf(const TrainingOptions& options) {
  if (!options.network) return Placement(static_cast<int>(options.stages));
  if (options.policy != "causal") {
    return UsageError(fmt::format("--policy {} does not run on several ranks", options.policy),
                      "use --policy causal, or one process");
  }
  return Placement::Make(options.stages, options.network->ranks());
}

}  // namespace

Status CheckTraining(const Experiment& experiment, const TrainingOptions& options) {
  if (options.in_flight < 1) {
    return UsageError(
        fmt::format("--in-flight {}: at least one subnet must be in flight", options.in_flight));
  }
  if (options.threads_per_stage < 1) {
    return UsageError(fmt::format("--threads-per-stage {}: a stage needs at least one thread",
                                  options.threads_per_stage));
  }
  if (options.policy == "sequential" && options.stages != 1) {
    return UsageError(
        fmt::format("--policy sequential is the reference on one stage, not on {}", options.stages),
        "leave --stages out, or use --policy causal");
  }
  RETURN_IF_ERROR(CheckTrainable(options.policy));
  if (options.checkpoints.sink && options.policy == "asynchronous") {
    return UsageError("--policy asynchronous ignores causality, so there is no checkpoint of it",
                      "take none: --keep-checkpoints 0");
  }
  RETURN_IF_ERROR(MakePartition(options.partition, experiment.space, {}, options.stages));
  RETURN_IF_ERROR(RecomputePlan::Make(options.recompute, experiment.space));
  RETURN_IF_ERROR(PlacementOf(options));
  return {};
}

Result<TrainingOutcome> Train(Experiment& experiment, const TrainingOptions& options) {
  VERBATIM_CHECK(!options.sequence ||
                 (options.first == 0 && !options.checkpoints.sink && !options.has_checkpoints));
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  ASSIGN_OR_RETURN(auto policy, MakePolicy(options.policy));
  const CostTable costs =
      options.costs ? *options.costs : AnalyticCosts(experiment.space, experiment.spec);
  ASSIGN_OR_RETURN(const RecomputePlan recompute,
                   RecomputePlan::Make(options.recompute, experiment.space));
  ASSIGN_OR_RETURN(auto partition,
                   MakePartition(options.partition, experiment.space,
                                 recompute.Costs(costs, experiment.space), options.stages));
  ASSIGN_OR_RETURN(const Placement placement, PlacementOf(options));
  auto pipeline =
      std::make_unique<Pipeline>(experiment, options, *partition, recompute, *policy, placement);
  TrainingOutcome outcome = pipeline->Run();
  if (pipeline->has_stuck_stage()) {
    has_stuck_stage = true;
    (void)pipeline.release();
  }
  return outcome;
}

bool HasStuckStage() {
  return has_stuck_stage;
}

}  // namespace verbatim
