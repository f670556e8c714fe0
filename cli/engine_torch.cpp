#include "cli/engine_torch.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/exception_text.h"
#include "cli/progress.h"
#include "cli/recorded_training.h"
#include "cli/resumption.h"
#include "cli/stop_signals.h"
#include "supernet/costs.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/profile.h"

namespace verbatim {
namespace {

Result<MeasuredSpace> MeasureLayers(const ProfileRequest& request) {
  ConfigureDeterminism();
  at::set_num_threads(static_cast<int>(request.threads_per_stage));
  ASSIGN_OR_RETURN(const Spec spec, ReadSpec(request.spec));
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(request.device));
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, FolderOf(request.spec), request.data_folder, device));
  const StopSignals signals;
  const auto layers = static_cast<std::int64_t>(experiment.space.layers().size());
  ProgressBar progress("measuring", (request.repeat + 1) * layers, request.quiet,
                       /*no_color=*/false);
  ProfileOptions options{.repeat = request.repeat, .on_progress = [&](std::int64_t done) {
                           progress.Update(done);
                           return !signals.requested();
                         }};
  ASSIGN_OR_RETURN(CostTable costs, MeasureCosts(experiment, options));
  return MeasuredSpace{spec, std::move(experiment.space), std::move(costs)};
}

}  // namespace

Status TorchEngine::Train(const TrainRequest& request) {
  try {
    return TrainAndRecord(request);
  } catch (const std::exception& error) {
    return Failed("the run failed: " + ExceptionText(error));
  }
}

Status TorchEngine::Resume(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                           Verdict& verdict) {
  try {
    return ResumeAndRecord(std::move(reader), request, verdict);
  } catch (const std::exception& error) {
    return Failed("the run failed: " + ExceptionText(error));
  }
}

Result<MeasuredSpace> TorchEngine::Profile(const ProfileRequest& request) {
  try {
    return MeasureLayers(request);
  } catch (const std::exception& error) {
    return Failed("the measurement failed: " + ExceptionText(error));
  }
}

Status TorchEngine::Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                              ReexecutionSink& sink) {
  const StopSignals signals;
  ReexecuteOptions stoppable = options;
  stoppable.stop = &signals.requested();
  return verbatim::Reexecute(run, stoppable, sink);
}

Result<Explanation> TorchEngine::Explain(const ExplainSide& left, const ExplainSide& right,
                                         std::int64_t seq) {
  return verbatim::Explain(left, right, seq);
}

Result<EngineDescription> TorchEngine::Describe(const std::string& device,
                                                std::int64_t threads_per_stage) {
  try {
    ConfigureDeterminism();
    ASSIGN_OR_RETURN(const at::Device parsed, ParseDevice(device));
    return EngineDescription{DescribeEnvironment(parsed, threads_per_stage), ListDevices()};
  } catch (const std::exception& error) {
    return Failed(fmt::format("{} cannot be described: {}", device, ExceptionText(error)));
  }
}

}  // namespace verbatim
