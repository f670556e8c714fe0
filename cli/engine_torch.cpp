#include "cli/engine_torch.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <exception>
#include <functional>
#include <utility>

#include "base/exception_text.h"
#include "cli/progress.h"
#include "cli/recorded_training.h"
#include "cli/resumption.h"
#include "cli/stop_signals.h"
#include "cli/worker.h"
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
  ASSIGN_OR_RETURN(const auto devices, ParseDevices(request.device));
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, FolderOf(request.spec), request.data_folder, devices));
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

/// Does it, and leaves the other ranks, whatever comes of it.
Status OnBehalf(RankSession& session, const char* what, const std::function<Status()>& action) {
  Status done;
  try {
    done = action();
  } catch (const std::exception& error) {
    done = Failed(fmt::format("the {} failed: {}", what, ExceptionText(error)));
  }
  session.Leave(done ? "" : done.error().message);
  return done;
}

/// As a re-execution's ranks are to do it.
Result<RankJob> JobOf(const RunInfo& run, const ReexecuteOptions& options) {
  RankJob job;
  job.spec_json = run.spec_json;
  job.spec_folder = run.spec_folder;
  job.device = run.device.substr(0, run.device.find(':'));
  job.threads_per_stage = options.threads_per_stage;
  job.stages = options.stages;
  job.in_flight = options.in_flight;
  job.partition = options.partition;
  if (options.cost_file) {
    ASSIGN_OR_RETURN(job.costs_json, ReadCostText(*options.cost_file));
  }
  job.recompute = options.recompute;
  job.device_memory = options.device_memory;
  job.record_level = options.record_level.empty() ? run.record_level : options.record_level;
  job.stop_on_nan = false;
  job.sequence = options.subnets;
  return job;
}

}  // namespace

Status TorchEngine::Train(const TrainRequest& request) {
  return OnBehalf(session_, "run", [&] { return TrainAndRecord(request, session_); });
}

Status TorchEngine::Resume(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                           Verdict& verdict) {
  return OnBehalf(session_, "run",
                  [&] { return ResumeAndRecord(std::move(reader), request, session_, verdict); });
}

Status TorchEngine::Work(const WorkRequest& request) {
  return OnBehalf(session_, "run", [&] { return WorkForRankZero(request, session_); });
}

void TorchEngine::Dismiss(const RankPlace& place, const std::optional<Error>& why) {
  session_.Dismiss(place, why);
}

Result<MeasuredSpace> TorchEngine::Profile(const ProfileRequest& request) {
  try {
    return MeasureLayers(request);
  } catch (const std::exception& error) {
    return Failed("the measurement failed: " + ExceptionText(error));
  }
}

Status TorchEngine::Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                              const std::optional<RankPlace>& place, ReexecutionSink& sink) {
  return OnBehalf(session_, "re-execution", [&]() -> Status {
    if (place) {
      ASSIGN_OR_RETURN(const RankJob job, JobOf(run, options));
      RETURN_IF_ERROR(session_.Lead(*place, job));
    }
    const StopSignals signals;
    ReexecuteOptions stoppable = options;
    stoppable.network = session_.network();
    stoppable.has_stuck_stage = session_.has_stuck_stage();
    stoppable.stop = &signals.requested();
    return verbatim::Reexecute(run, stoppable, sink);
  });
}

Result<Explanation> TorchEngine::Explain(const ExplainSide& left, const ExplainSide& right,
                                         std::int64_t seq) {
  return verbatim::Explain(left, right, seq);
}

Result<EngineDescription> TorchEngine::Describe(const std::string& device,
                                                std::int64_t threads_per_stage) {
  try {
    ConfigureDeterminism();
    ASSIGN_OR_RETURN(const auto devices, ParseDevices(device));
    return EngineDescription{DescribeEnvironment(devices.front(), threads_per_stage), ListDevices(),
                             DescribeCuda()};
  } catch (const std::exception& error) {
    return Failed(fmt::format("{} cannot be described: {}", device, ExceptionText(error)));
  }
}

}  // namespace verbatim
