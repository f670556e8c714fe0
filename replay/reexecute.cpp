#include "replay/reexecute.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <atomic>
#include <exception>

#include "base/exception_text.h"
#include "recorder/subnet_assembler.h"
#include "supernet/spec.h"
#include "trainer/environment.h"
#include "trainer/evaluation.h"
#include "trainer/experiment.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

/// "cuda:1" was one machine's way to say which GPU; what bears on the bits is the kind.
std::string DeviceKind(const std::string& device) {
  return device.substr(0, device.find(':'));
}

Result<at::Device> DeviceOf(const RunInfo& run) {
  Result<at::Device> device = ParseDevice(DeviceKind(run.device));
  if (device) return device;
  return Failed(fmt::format("the run was made on {}, which this program cannot use here: {}",
                            run.device, device.error().message),
                "re-execute it on a machine, and with a build, that has such a device");
}

Status TrainIntoSink(Experiment& experiment, const RunInfo& run, const ReexecuteOptions& options,
                     ReexecutionSink& sink) {
  ASSIGN_OR_RETURN(const RecordLevel level, RecordLevelFromString(run.record_level));
  std::atomic<bool> stop = options.subnets == 0;
  SubnetAssembler assembler([&](SubnetRow&& row) -> Status {
    const bool goes_on = sink.OnSubnet(row);
    if (!goes_on || row.seq + 1 == options.subnets) stop = true;
    return {};
  });
  TrainingOptions training;
  training.in_flight = 1;
  training.threads_per_stage = options.threads_per_stage;
  training.policy = "sequential";
  training.record_level = level;
  training.stop_on_nan = false;  // the record says how far the run went
  training.observer = &assembler;
  training.stop = &stop;
  ASSIGN_OR_RETURN(const TrainingOutcome outcome, Train(experiment, training));
  if (outcome.status == RunStatus::kFailed) {
    return Failed("the re-execution failed: " + outcome.detail);
  }
  if (options.evaluate && outcome.subnets == experiment.spec.training.subnets) {
    sink.OnEvaluations(EvaluateSubnets(experiment, {}));
  }
  return {};
}

Status Reexecute(const RunInfo& run, const ReexecuteOptions& options, ReexecutionSink& sink) {
  ConfigureDeterminism();
  // For this thread, which draws the initial weights and evaluates; stages set their own.
  at::set_num_threads(static_cast<int>(options.threads_per_stage));
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run.spec_json, "the record's spec"));
  ASSIGN_OR_RETURN(const at::Device device, DeviceOf(run));
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, run.spec_folder, options.data_folder, device));
  sink.OnEnvironment(DescribeEnvironment(device, options.threads_per_stage));
  sink.OnDataset(experiment.dataset->digest());
  sink.OnLayers(DescribeLayers(experiment));
  return TrainIntoSink(experiment, run, options, sink);
}

}  // namespace

Status ReexecuteSequentially(const RunInfo& run, const ReexecuteOptions& options,
                             ReexecutionSink& sink) {
  try {
    return Reexecute(run, options, sink);
  } catch (const std::exception& error) {
    return Failed("the re-execution failed: " + ExceptionText(error));
  }
}

}  // namespace verbatim
