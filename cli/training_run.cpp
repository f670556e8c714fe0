#include "cli/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>

#include "base/digest.h"
#include "base/exception_text.h"
#include "cli/progress.h"
#include "supernet/costs.h"
#include "trainer/evaluation.h"
#include "trainer/ranks/network.h"
#include "trainer/stage_devices.h"
#include "verify/text.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

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

/// Evaluates a run that is trained to its end; what goes wrong changes how the run ended. A stop
/// leaves no evaluations: a record has all of them or none.
void Evaluate(const Experiment& experiment, const StopSignals& signals, bool quiet,
              TrainingSummary& summary, TrainingOutcome& outcome) {
  ProgressBar progress("evaluating", experiment.spec.evaluation.subnets, quiet,
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

/// Of a run whose stages held some of the layers only.
std::string DescribeLayers(const CacheStatistics& layers) {
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  return fmt::format(
      "layers: {:.1f} % were there when wanted; {:.1f} MB loaded, {:.1f} MB written back, at most "
      "{:.1f} MB on a stage\n",
      100.0 * layers.HitRate(), megabytes(layers.bytes_loaded), megabytes(layers.bytes_written),
      megabytes(*std::ranges::max_element(layers.peak_bytes)));
}

/// "4 stages", "4 stages in 2 processes".
std::string DescribeLayout(const TrainingOptions& options) {
  const std::string stages = FormatCount(options.stages, "stage", "stages");
  if (!options.network) return stages;
  return fmt::format("{} in {} processes", stages, options.network->ranks());
}

}  // namespace

void TrainingSummary::AddLoss(float loss, std::int64_t planned) {
  if (last_losses.empty()) first_loss = loss;
  last_losses.push_back(loss);
  if (static_cast<std::int64_t>(last_losses.size()) > std::max<std::int64_t>(1, planned / 10)) {
    last_losses.pop_front();
  }
}

Status SetLayout(const LayoutOptions& layout, const Experiment& experiment,
                 TrainingOptions& options) {
  options.stages = layout.stages;
  options.in_flight = layout.in_flight;
  options.partition = layout.partition;
  options.recompute = layout.recompute;
  options.device_memory = layout.device_memory;
  if (!layout.costs) return {};
  ASSIGN_OR_RETURN(options.costs, ReadCosts(*layout.costs, experiment.space, experiment.spec));
  return {};
}

Result<RankJob> DescribeJob(const Experiment& experiment, const TrainingOptions& options,
                            const std::optional<std::filesystem::path>& costs) {
  RankJob job;
  job.spec_json = SpecToJson(experiment.spec);
  job.device = experiment.device.is_cpu() ? "cpu" : "cuda";
  job.dataset_digest = ToHex(experiment.dataset->digest());
  job.threads_per_stage = options.threads_per_stage;
  job.stages = options.stages;
  job.in_flight = options.in_flight;
  job.partition = options.partition;
  if (costs) {
    ASSIGN_OR_RETURN(job.costs_json, ReadCostText(*costs));
  }
  job.recompute = options.recompute;
  job.device_memory = options.device_memory;
  job.policy = options.policy;
  job.record_level = ToString(options.record_level);
  job.stop_on_nan = options.stop_on_nan;
  job.first = options.first;
  job.begin_ns = options.begin_ns;
  job.sends_layers = options.sends_layers;
  return job;
}

TrainingOutcome TrainAndEvaluate(Experiment& experiment, TrainingOptions options,
                                 const StopSignals& signals, bool quiet, TrainingSummary& summary) {
  const std::int64_t planned = experiment.spec.training.subnets;
  ProgressBar progress("training", planned, quiet, /*no_color=*/false);
  options.stop = &signals.requested();
  options.on_progress = [&](std::int64_t finished, float loss) {
    progress.Update(finished);
    summary.AddLoss(loss, planned);
  };
  const Clock::time_point start = Clock::now();
  const Result<TrainingOutcome> trained = Train(experiment, options);
  if (!trained) return {RunStatus::kFailed, trained.error().message, 0};
  summary.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  progress.Finish();
  TrainingOutcome outcome = *trained;
  if (outcome.status == RunStatus::kComplete) {
    Evaluate(experiment, signals, quiet, summary, outcome);
  }
  return outcome;
}

std::string DescribeTraining(const TrainingOptions& options, const TrainingOutcome& outcome,
                             const TrainingSummary& summary) {
  const std::int64_t trained = outcome.subnets - options.first;
  std::string text = fmt::format("trained {} in {:.1f} s ({:.1f} subnets/s) on {}, {} schedule\n",
                                 FormatCount(trained, "subnet", "subnets"), summary.seconds,
                                 static_cast<double>(trained) / std::max(summary.seconds, 1e-9),
                                 DescribeLayout(options), options.policy);
  if (!summary.last_losses.empty()) {
    const float sum = std::accumulate(summary.last_losses.begin(), summary.last_losses.end(), 0.0f);
    const auto count = static_cast<std::int64_t>(summary.last_losses.size());
    text += fmt::format("loss: {} at the first subnet, {} over the last {}\n",
                        FormatNumber(summary.first_loss, 5),
                        FormatNumber(sum / static_cast<float>(count), 5), count);
  }
  if (!summary.evaluations.empty()) text += DescribeEvaluations(summary.evaluations);
  if (options.network) {
    const double megabytes = static_cast<double>(outcome.bytes_moved) / 1e6;
    text += fmt::format("between processes: {:.1f} MB, {:.2f} MB a subnet\n", megabytes,
                        megabytes / static_cast<double>(std::max<std::int64_t>(trained, 1)));
  }
  if (outcome.layers) text += DescribeLayers(*outcome.layers);
  if (outcome.status == RunStatus::kInterrupted) text += outcome.detail + "\n";
  return text;
}

std::string DescribeRecord(const std::filesystem::path& record, RunStatus status,
                           const RecordedCheckpoints* checkpoints) {
  const std::string path = record.string();
  std::string text = fmt::format("record: {}\n", path);
  if (checkpoints && !checkpoints->rows().empty()) {
    text += fmt::format("checkpoint: after {}, in {}\n",
                        FormatCount(checkpoints->rows().back().cut, "subnet", "subnets"),
                        CheckpointFolder(record).string());
  }
  const std::string next = status == RunStatus::kComplete
                               ? fmt::format("verify {} --reexecute all", ShellPath(path))
                               : fmt::format("resume {}", ShellPath(path));
  return text + fmt::format("next: verbatim {}\n", next);
}

}  // namespace verbatim
