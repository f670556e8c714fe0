#include "trainer/training.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/check.h"
#include "schedule/device_memory.h"
#include "schedule/partition.h"
#include "schedule/placement.h"
#include "schedule/policy.h"
#include "schedule/recompute.h"
#include "trainer/cuda/nccl_payloads.h"
#include "trainer/layer_copies.h"
#include "trainer/pipeline.h"
#include "trainer/ranks/network.h"

namespace verbatim {
namespace {

Result<Placement> PlacementOf(const TrainingOptions& options) {
  if (!options.network) return Placement(static_cast<int>(options.stages));
  if (options.policy != "causal") {
    return UsageError(fmt::format("--policy {} does not run on several ranks", options.policy),
                      "use --policy causal, or one process");
  }
  return Placement::Make(options.stages, options.network->ranks());
}

Result<std::unique_ptr<Partition>> PartitionOf(const Experiment& experiment,
                                               const TrainingOptions& options) {
  const CostTable costs =
      options.costs ? *options.costs : AnalyticCosts(experiment.space, experiment.spec);
  ASSIGN_OR_RETURN(const RecomputePlan recompute,
                   RecomputePlan::Make(options.recompute, experiment.space));
  return MakePartition(options.partition, experiment.space,
                       recompute.Costs(costs, experiment.space), options.stages);
}

Status CheckChannels(const Experiment& experiment, const TrainingOptions& options) {
  if (!options.network || options.open_payloads || experiment.device.is_cpu()) return {};
  const std::string obstacle = NcclObstacle();
  if (obstacle.empty()) return {};
  return UsageError(
      fmt::format("--device cuda does not work on several ranks here: {}", obstacle),
      "use a LibTorch that brings NCCL (PyTorch's CUDA wheels do), one process, or --device cpu");
}

Status CheckDeviceMemory(const Experiment& experiment, const TrainingOptions& options) {
  if (!options.device_memory) return {};
  if (!KeepsToDeviceMemory(options.policy)) {
    return UsageError(fmt::format("--device-memory does not go with --policy {}", options.policy),
                      "leave one of them out");
  }
  VERBATIM_CHECK(experiment.home.is_cpu(), "LayersHome::kHost goes with device_memory");
  if (options.is_memory_checked) return {};
  ASSIGN_OR_RETURN(const std::int64_t least, LeastDeviceMemoryOf(experiment, options));
  if (*options.device_memory >= least) return {};
  return UsageError(
      fmt::format("--device-memory {}: a stage must hold the layers of its part of one subnet, "
                  "which takes up to {} bytes under this layout",
                  *options.device_memory, least),
      fmt::format("give it at least --device-memory {}; twice as much lets layers be loaded ahead",
                  least));
}

}  // namespace

Result<std::int64_t> LeastDeviceMemoryOf(const Experiment& experiment,
                                         const TrainingOptions& options) {
  ASSIGN_OR_RETURN(const auto partition, PartitionOf(experiment, options));
  const std::vector<LayerBytes> bytes = BytesOfLayers(experiment.layers);
  LeastDeviceMemory least(experiment.space, bytes, partition->stages());
  const auto add = [&](std::int64_t seq) {
    const auto choices = experiment.sampler->Draw(seq);
    least.Add(choices, partition->Ranges(choices));
  };
  if (options.sequence) {
    for (const std::int64_t seq : *options.sequence) add(seq);
  } else {
    for (std::int64_t seq = options.first; seq < experiment.spec.training.subnets; ++seq) add(seq);
  }
  return least.bytes();
}

bool KeepsToDeviceMemory(const std::string& policy) {
  return policy == "causal" || policy == "sequential";
}

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
  if (options.policy == "asynchronous" && experiment.devices.size() > 1 && options.stages > 1) {
    return UsageError(
        "--policy asynchronous lets two stages use a layer at once, which has to be on "
        "one device for that",
        fmt::format("name one: --device {}", experiment.device.str()));
  }
  RETURN_IF_ERROR(MakePartition(options.partition, experiment.space, {}, options.stages));
  RETURN_IF_ERROR(RecomputePlan::Make(options.recompute, experiment.space));
  RETURN_IF_ERROR(PlacementOf(options));
  RETURN_IF_ERROR(CheckChannels(experiment, options));
  return CheckDeviceMemory(experiment, options);
}

Result<TrainingOutcome> Train(Experiment& experiment, const TrainingOptions& options) {
  VERBATIM_CHECK(!options.sequence ||
                 (options.first == 0 && !options.checkpoints.sink && !options.has_checkpoints));
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  ASSIGN_OR_RETURN(auto policy, MakePolicy(options.policy));
  ASSIGN_OR_RETURN(const RecomputePlan recompute,
                   RecomputePlan::Make(options.recompute, experiment.space));
  ASSIGN_OR_RETURN(const auto partition, PartitionOf(experiment, options));
  ASSIGN_OR_RETURN(const Placement placement, PlacementOf(options));
  auto pipeline =
      std::make_unique<Pipeline>(experiment, options, *partition, recompute, *policy, placement);
  TrainingOutcome outcome = pipeline->Run();
  if (pipeline->has_stuck_stage()) {
    if (options.has_stuck_stage) *options.has_stuck_stage = true;
    (void)pipeline.release();
  }
  return outcome;
}

}  // namespace verbatim
