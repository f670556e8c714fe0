// One run of the trainer from its first subnet to its evaluation, as `train` and `resume` do it,
// and what its summary says. Linked into verbatim-engine only.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/layout_options.h"
#include "cli/stop_signals.h"
#include "recorder/recorded_checkpoints.h"
#include "store/record.h"
#include "trainer/experiment.h"
#include "trainer/ranks/job.h"
#include "trainer/training.h"

namespace verbatim {

struct TrainingSummary {
  double seconds = 0.0;
  float first_loss = 0.0f;
  std::deque<float> last_losses;  ///< the last tenth of the run
  std::vector<EvaluationRow> evaluations;

  void AddLoss(float loss, std::int64_t planned);
};

/// Puts a layout into training options; reads its cost file.
Status SetLayout(const LayoutOptions& layout, const Experiment& experiment,
                 TrainingOptions& options);

/// What the other ranks are told to train; `costs`: the cost file of `options`. Whether they
/// report, and checkpoints, are the caller's to add.
Result<RankJob> DescribeJob(const Experiment& experiment, const TrainingOptions& options,
                            const std::optional<std::filesystem::path>& costs);

/// Trains as `options` say and evaluates, with a progress bar unless `quiet`. A stop leaves no
/// evaluations: a record has all of them or none.
TrainingOutcome TrainAndEvaluate(Experiment& experiment, TrainingOptions options,
                                 const StopSignals& signals, bool quiet, TrainingSummary& summary);

/// What was trained, how fast and how well, for stdout.
std::string DescribeTraining(const TrainingOptions& options, const TrainingOutcome& outcome,
                             const TrainingSummary& summary);

/// Where the record and its newest checkpoint are, and which command comes next. `checkpoints` may
/// be null.
std::string DescribeRecord(const std::filesystem::path& record, RunStatus status,
                           const RecordedCheckpoints* checkpoints);

}  // namespace verbatim
