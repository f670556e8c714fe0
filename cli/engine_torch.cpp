#include "cli/engine_torch.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <numeric>

#include "base/exception_text.h"
#include "base/utc_time.h"
#include "cli/injected_fault.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "cli/version.h"
#include "recorder/recorder.h"
#include "supernet/costs.h"
#include "trainer/environment.h"
#include "trainer/evaluation.h"
#include "trainer/experiment.h"
#include "trainer/profile.h"
#include "trainer/training.h"
#include "verify/text.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

/// What the summary says of a run.
struct Summary {
  double seconds = 0.0;
  float first_loss = 0.0f;
  std::deque<float> last_losses;  ///< the last tenth of the run
  std::vector<EvaluationRow> evaluations;
  std::string injected;  ///< a line on the injected fault; empty without one

  void AddLoss(std::int64_t finished, float loss, std::int64_t planned) {
    if (finished == 1) first_loss = loss;
    last_losses.push_back(loss);
    if (static_cast<std::int64_t>(last_losses.size()) > std::max<std::int64_t>(1, planned / 10)) {
      last_losses.pop_front();
    }
  }
};

Result<Spec> EffectiveSpec(const TrainRequest& request) {
  ASSIGN_OR_RETURN(Spec spec, ReadSpec(request.spec));
  if (request.subnets) spec.training.subnets = *request.subnets;
  if (!request.record_level.empty() && request.record_level != "off") {
    ASSIGN_OR_RETURN(spec.record_level, RecordLevelFromString(request.record_level));
  }
  return spec;
}

std::filesystem::path FolderOf(const std::filesystem::path& file) {
  return std::filesystem::absolute(file).parent_path().lexically_normal();
}

RunInfo DescribeRun(const TrainRequest& request, const Experiment& experiment) {
  RunInfo run;
  run.tool_version = ToolVersion();
  run.spec_json = SpecToJson(experiment.spec);
  run.spec_folder = FolderOf(request.spec).string();
  run.command_line = request.command_line;
  run.policy = request.policy;
  run.record_level = ToString(experiment.spec.record_level);
  run.device = experiment.device.str();
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
  return Recorder::Start(std::move(writer));
}

Result<TrainingOptions> OptionsOf(const TrainRequest& request, const Experiment& experiment) {
  TrainingOptions options;
  options.stages = request.layout.stages;
  options.in_flight = request.layout.in_flight;
  options.partition = request.layout.partition;
  if (request.layout.costs) {
    ASSIGN_OR_RETURN(options.costs,
                     ReadCosts(*request.layout.costs, experiment.space, experiment.spec));
  }
  options.threads_per_stage = request.threads_per_stage;
  options.policy = request.policy;
  options.record_level = experiment.spec.record_level;
  options.stop_on_nan = request.stop_on_nan;
  return options;
}

std::string DescribeEvaluations(const std::vector<EvaluationRow>& evaluations) {
  double sum = 0.0;
  double lowest = 1.0;
  double highest = 0.0;
  for (const EvaluationRow& row : evaluations) {
    const double accuracy = static_cast<double>(row.correct) / static_cast<double>(row.total);
    sum += accuracy;
    lowest = std::min(lowest, accuracy);
    highest = std::max(highest, accuracy);
  }
  return fmt::format(
      "held-out accuracy of {} random subnets: mean {:.3f}, lowest {:.3f}, "
      "highest {:.3f}\n",
      evaluations.size(), sum / static_cast<double>(evaluations.size()), lowest, highest);
}

std::string DescribeOutcome(const TrainRequest& request, const TrainingOutcome& outcome,
                            const Summary& summary) {
  std::string text =
      fmt::format("trained {} in {:.1f} s ({:.1f} subnets/s) on {}, {} schedule\n",
                  FormatCount(outcome.subnets, "subnet", "subnets"), summary.seconds,
                  static_cast<double>(outcome.subnets) / std::max(summary.seconds, 1e-9),
                  FormatCount(request.layout.stages, "stage", "stages"), request.policy);
  if (!summary.last_losses.empty()) {
    const float sum = std::accumulate(summary.last_losses.begin(), summary.last_losses.end(), 0.0f);
    const auto count = static_cast<std::int64_t>(summary.last_losses.size());
    text += fmt::format("loss: {} at the first subnet, {} over the last {}\n",
                        FormatNumber(summary.first_loss, 5),
                        FormatNumber(sum / static_cast<float>(count), 5), count);
  }
  if (!summary.evaluations.empty()) text += DescribeEvaluations(summary.evaluations);
  if (outcome.status == RunStatus::kInterrupted) text += outcome.detail + "\n";
  text += summary.injected;
  if (request.record_level != "off") {
    const std::string path = request.output.string();
    text += fmt::format("record: {}\nnext: verbatim verify {} --reexecute all\n", path,
                        ShellPath(path));
  }
  return text;
}

/// Evaluates a run that is trained to its end; what goes wrong changes how the run ended. A stop
/// leaves no evaluations: a record has all of them or none.
void Evaluate(const TrainRequest& request, const Experiment& experiment, const StopSignals& signals,
              Summary& summary, TrainingOutcome& outcome) {
  ProgressBar progress("evaluating", experiment.spec.evaluation.subnets, request.quiet,
                       /*no_color=*/false);
  try {
    summary.evaluations = EvaluateSubnets(experiment, [&](std::int64_t done) {
      progress.Update(done);
      return !signals.requested();
    });
  } catch (const std::exception& error) {
    outcome.status = RunStatus::kFailed;
    outcome.detail = "the evaluation failed: " + ExceptionText(error);
  }
  const auto evaluated = static_cast<std::int64_t>(summary.evaluations.size());
  if (evaluated == experiment.spec.evaluation.subnets) return;
  summary.evaluations.clear();
  if (outcome.status == RunStatus::kFailed) return;
  outcome.status = RunStatus::kInterrupted;
  outcome.detail = fmt::format(
      "stopped on request after {} of {} subnets, before the evaluation "
      "was done",
      outcome.subnets, outcome.subnets);
}

/// Trains and evaluates.
TrainingOutcome TrainAndEvaluate(const TrainRequest& request, Experiment& experiment,
                                 TrainingOptions options, const StopSignals& signals,
                                 Summary& summary) {
  const std::int64_t planned = experiment.spec.training.subnets;
  ProgressBar progress("training", planned, request.quiet, /*no_color=*/false);
  options.stop = &signals.requested();
  options.on_progress = [&](std::int64_t finished, float loss) {
    progress.Update(finished);
    summary.AddLoss(finished, loss, planned);
  };
  const Clock::time_point start = Clock::now();
  const Result<TrainingOutcome> trained = Train(experiment, options);
  if (!trained) return {RunStatus::kFailed, trained.error().message, 0};
  summary.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  progress.Finish();
  TrainingOutcome outcome = *trained;
  if (outcome.status == RunStatus::kComplete) {
    Evaluate(request, experiment, signals, summary, outcome);
  }
  return outcome;
}

Status TrainAndRecord(const TrainRequest& request) {
  ConfigureDeterminism();
  at::set_num_threads(static_cast<int>(request.threads_per_stage));
  ASSIGN_OR_RETURN(const Spec spec, EffectiveSpec(request));
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(request.device));
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, FolderOf(request.spec), request.data_folder, device));
  ASSIGN_OR_RETURN(TrainingOptions options, OptionsOf(request, experiment));
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  ASSIGN_OR_RETURN(InjectedFault fault, InjectedFault::Plan(request, experiment));
  options.probe = fault.probe();
  const StopSignals signals;
  ASSIGN_OR_RETURN(const auto recorder, StartRecorder(request, experiment, fault));
  options.observer = recorder.get();
  Summary summary;
  const TrainingOutcome outcome = TrainAndEvaluate(request, experiment, options, signals, summary);
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
  summary.injected = fault.Describe();
  if (request.quiet) return {};
  return WriteToStdout(DescribeOutcome(request, outcome, summary));
}

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
