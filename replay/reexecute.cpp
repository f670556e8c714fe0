#include "replay/reexecute.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/exception_text.h"
#include "recorder/subnet_assembler.h"
#include "replay/in_order.h"
#include "supernet/spec.h"
#include "trainer/environment.h"
#include "trainer/evaluation.h"
#include "trainer/experiment.h"
#include "trainer/fault_injection.h"
#include "trainer/probe_pair.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

/// What comes of a wish, see ReexecuteOptions.
Result<std::optional<std::int64_t>> GrantedMemory(const Experiment& experiment,
                                                  const TrainingOptions& training) {
  if (!KeepsToDeviceMemory(training.policy)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::int64_t least, LeastDeviceMemoryOf(experiment, training));
  return std::max(least, *training.device_memory);
}

Result<TrainingOptions> Layout(const ReexecuteOptions& options, RecordLevel level,
                               const Experiment& experiment) {
  TrainingOptions training;
  training.stages = options.stages;
  training.in_flight = options.in_flight;
  training.partition = options.partition;
  training.recompute = options.recompute;
  training.device_memory = options.device_memory;
  if (options.cost_file) {
    ASSIGN_OR_RETURN(training.costs,
                     ReadCosts(*options.cost_file, experiment.space, experiment.spec));
  }
  training.threads_per_stage = options.threads_per_stage;
  const bool is_reference = options.stages == 1 && options.in_flight == 1;
  training.policy = is_reference ? "sequential" : "causal";
  if (!options.policy.empty()) training.policy = options.policy;
  training.record_level = level;
  training.stop_on_nan = false;  // the record says how far the run went
  training.sequence = options.subnets;
  training.network = options.network;
  training.has_stuck_stage = options.has_stuck_stage;
  if (options.device_memory && options.wishes_device_memory) {
    ASSIGN_OR_RETURN(training.device_memory, GrantedMemory(experiment, training));
  }
  return training;
}

Status TrainIntoSink(Experiment& experiment, const ReexecuteOptions& options,
                     TrainingOptions training, ReexecutionSink& sink) {
  std::atomic<bool> stop = false;
  InOrder in_order(options.subnets, [&](SubnetRow&& row) { return sink.OnSubnet(row); });
  const auto is_stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  // Subnets are reported finished one at a time.
  SubnetAssembler assembler([&](SubnetRow&& row) -> Status {
    if (!in_order.Add(std::move(row)) || is_stopped()) stop = true;
    return {};
  });
  training.observer = &assembler;
  training.stop = &stop;
  ASSIGN_OR_RETURN(const TrainingOutcome outcome, Train(experiment, training));
  if (outcome.status == RunStatus::kFailed) {
    return Failed("the re-execution failed: " + outcome.detail);
  }
  if (!in_order.goes_on()) return {};
  const auto stopped = [&] {
    return Failed(fmt::format("the re-execution was stopped on request after {} of {} subnets",
                              outcome.subnets, options.subnets.size()));
  };
  if (is_stopped() && outcome.status != RunStatus::kComplete) return stopped();
  if (!options.evaluate) return {};
  const auto evaluations = EvaluateSubnets(experiment, [&](std::int64_t) { return !is_stopped(); });
  if (std::ssize(evaluations) < experiment.spec.evaluation.subnets) return stopped();
  sink.OnEvaluations(evaluations);
  return {};
}

/// Says which data was trained on, where another or none is found.
tl::unexpected<Error> WithDataset(Error error, const RunInfo& run) {
  error.message += fmt::format(" (the run was trained on a data set with digest {})",
                               ToShortHex(run.dataset_digest));
  if (error.hint.empty()) error.hint = "Name the folder that holds it with --data.";
  return tl::unexpected(std::move(error));
}

/// Null where nothing is injected into the training.
Result<std::unique_ptr<StageProbe>> InjectionOf(const Experiment& experiment,
                                                const ReexecuteOptions& options,
                                                const std::string& policy) {
  if (!options.fault) return nullptr;
  const FaultSetting setting{experiment.spec, experiment.space, *experiment.sampler, policy,
                             experiment.device.is_cpu()};
  ASSIGN_OR_RETURN(const FaultPlan plan, PlanFault(*options.fault, setting));
  return MakeFaultInjection(plan, experiment.spec, options.threads_per_stage);
}

Status Execute(const RunInfo& run, const ReexecuteOptions& options, ReexecutionSink& sink) {
  ConfigureDeterminism();
  // For this thread, which draws the initial weights and evaluates; stages set their own.
  at::set_num_threads(static_cast<int>(options.threads_per_stage));
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run.spec_json, "the record's spec"));
  ASSIGN_OR_RETURN(const auto devices, ParseRecordedDevices(run.device, options.local));
  ASSIGN_OR_RETURN(const RecordLevel level,
                   RecordLevelFromString(options.record_level.empty() ? run.record_level
                                                                      : options.record_level));
  if (!sink.OnEnvironment(DescribeEnvironment(devices.front(), options.threads_per_stage)))
    return {};
  const bool is_bounded = options.policy.empty() || KeepsToDeviceMemory(options.policy);
  auto experiment = PrepareExperiment(spec, run.spec_folder, options.data_folder, devices,
                                      HomeFor(is_bounded ? options.device_memory : std::nullopt));
  if (!experiment) return WithDataset(std::move(experiment).error(), run);
  ASSIGN_OR_RETURN(TrainingOptions training, Layout(options, level, *experiment));
  RETURN_IF_ERROR(CheckTraining(*experiment, training));
  training.is_memory_checked = true;
  ASSIGN_OR_RETURN(const auto injection, InjectionOf(*experiment, options, training.policy));
  std::optional<ProbePair> both;
  if (injection && options.probe) both.emplace(*injection, *options.probe);
  training.probe = both ? &*both : injection ? injection.get() : options.probe;
  sink.OnDataset(experiment->dataset->digest());
  sink.OnLayers(DescribeLayers(*experiment));
  return TrainIntoSink(*experiment, options, training, sink);
}

}  // namespace

Status Reexecute(const RunInfo& run, const ReexecuteOptions& options, ReexecutionSink& sink) {
  try {
    return Execute(run, options, sink);
  } catch (const std::exception& error) {
    return Failed("the re-execution failed: " + ExceptionText(error));
  }
}

}  // namespace verbatim
