#include "recorder/step_recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <tuple>

#include "base/utc_time.h"
#include "recorder/content_digest.h"
#include "recorder/recorder.h"
#include "recorder/step_check.h"
#include "store/head.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kQueueBytesMax = 64 << 20;

RunInfo RunOf(const StepRun& run) {
  RunInfo info;
  info.kind = RunKind::kSteps;
  info.tool_version = run.tool_version;
  info.spec_json = StepSpecToJson(run.spec);
  info.spec_folder = run.folder;
  info.command_line = run.command_line;
  info.policy = "steps";
  info.record_level = run.record_level;
  info.device = run.device;
  info.subnets_planned = run.steps_planned;
  info.started_utc = UtcNow();
  return info;
}

/// However the two are spelt; a file need not be there.
bool IsSameFile(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const fs::path full_a = fs::weakly_canonical(fs::absolute(a, error), error);
  if (error) return false;
  const fs::path full_b = fs::weakly_canonical(fs::absolute(b, error), error);
  return !error && full_a == full_b;
}

Result<RecorderOptions> QueueOptions(const fs::path& path, const StepRecorderOptions& options,
                                     std::size_t layers) {
  RecorderOptions queue;
  const std::size_t row_bytes = sizeof(SubnetRow) + layers * sizeof(AccessRow);
  queue.queue_capacity =
      std::clamp<std::size_t>(kQueueBytesMax / row_bytes, 2, queue.queue_capacity);
  if (options.head_file.empty()) return queue;
  if (IsSameFile(options.head_file, path)) {
    return UsageError(fmt::format("the heads would be written into the record {}", path.string()),
                      "choose another file of heads");
  }
  std::error_code error;
  if (fs::exists(options.head_file, error)) {
    return UsageError(fmt::format("{} exists already, with the heads of an earlier run",
                                  options.head_file.string()),
                      "choose another file of heads");
  }
  if (options.head_every < 0) return UsageError("head_every is below 0");
  queue.head_every = options.head_every;
  queue.on_head = [file = options.head_file](const Head& head) { return AppendHead(file, head); };
  return queue;
}

class QueueStepRecorder final : public StepRecorder {
 public:
  QueueStepRecorder(StepRun run, std::vector<LayerRow> layers, std::vector<StepLayerKind> kinds,
                    std::unique_ptr<Recorder> recorder)
      : run_(std::move(run)),
        layers_(std::move(layers)),
        kinds_(std::move(kinds)),
        check_(run_, layers_, kinds_),
        recorder_(std::move(recorder)),
        process_(getpid()) {}

  ~QueueStepRecorder() override {
    // A child of fork has neither the writer's thread nor a right to the file.
    if (getpid() != process_) static_cast<void>(recorder_.release());
  }

  Status Record(StepRow row) override;
  Status Close(RunStatus status, const std::string& detail) override;
  std::int64_t recorded() const override {
    const std::scoped_lock lock(mutex_);
    return recorded_;
  }

 private:
  Status CheckIsOpen() const;
  SubnetRow SubnetOf(StepRow&& row) const;
  std::vector<AccessRow> AccessesOf(const StepRow& row) const;

  const StepRun run_;
  const std::vector<LayerRow> layers_;
  const std::vector<StepLayerKind> kinds_;
  const StepRowCheck check_;
  std::unique_ptr<Recorder> recorder_;
  const pid_t process_;

  mutable std::mutex mutex_;
  std::int64_t recorded_ = 0;
  std::int64_t last_step_ = -1;
  bool is_closed_ = false;
};

Status QueueStepRecorder::CheckIsOpen() const {
  if (is_closed_) return UsageError("the recorder is closed");
  return {};
}

std::vector<AccessRow> QueueStepRecorder::AccessesOf(const StepRow& row) const {
  std::vector<AccessRow> accesses;
  accesses.reserve(layers_.size());
  for (const LayerRow& layer : layers_) {
    if (!layer.versioned) continue;
    AccessRow access;
    access.layer = layer.layer;
    access.read_seq = access.base_seq = recorded_ - 1;
    if (!row.layers.empty()) {
      const StepDigests& digests = row.layers[accesses.size()];
      access.weights = digests.weights;
      access.optimizer_state = digests.optimizer_state;
      access.gradients = digests.gradients;
    }
    accesses.push_back(access);
  }
  return accesses;
}

SubnetRow QueueStepRecorder::SubnetOf(StepRow&& row) const {
  SubnetRow subnet;
  subnet.seq = recorded_;
  if (row.batch) subnet.batch_digest = *row.batch;
  subnet.loss_bits = row.loss_bits.value_or(kNoLoss);
  subnet.accesses = AccessesOf(row);
  subnet.activations = std::move(row.captured);
  std::sort(subnet.activations.begin(), subnet.activations.end(),
            [](const ActivationRow& a, const ActivationRow& b) {
              return std::tie(a.microbatch, a.position) < std::tie(b.microbatch, b.position);
            });
  subnet.step = std::move(row.facts);
  subnet.content_leaf = ContentLeaf(subnet);
  subnet.layout_leaf = LayoutLeaf(subnet);
  return subnet;
}

Status QueueStepRecorder::Record(StepRow row) {
  // Before the mutex, which another thread may have held at the fork.
  if (getpid() != process_) {
    return UsageError("this process was forked from the one that records",
                      "record in the process that opened the recorder");
  }
  const std::scoped_lock lock(mutex_);
  RETURN_IF_ERROR(CheckIsOpen());
  const std::int64_t step = row.facts.step;
  RETURN_IF_ERROR(check_.Check(row, last_step_));
  RETURN_IF_ERROR(recorder_->AddSubnet(SubnetOf(std::move(row))));
  ++recorded_;
  last_step_ = step;
  return {};
}

Status QueueStepRecorder::Close(RunStatus status, const std::string& detail) {
  if (getpid() != process_) {
    return UsageError("this process was forked from the one that records",
                      "close in the process that opened the recorder");
  }
  const std::scoped_lock lock(mutex_);
  RETURN_IF_ERROR(CheckIsOpen());
  if (status == RunStatus::kRunning) {
    return UsageError("a run cannot end as running", "one of: complete, interrupted, failed");
  }
  is_closed_ = true;
  return recorder_->Close(status, detail, {});
}

}  // namespace

Result<std::unique_ptr<StepRecorder>> StepRecorder::Open(
    const fs::path& path, const StepRun& run, std::span<const StepLayer> layers,
    std::span<const EnvironmentRow> environment, const StepRecorderOptions& options) {
  RETURN_IF_ERROR(CheckStepRun(run, layers, environment));
  ASSIGN_OR_RETURN(const RecorderOptions queue, QueueOptions(path, options, layers.size()));
  std::vector<LayerRow> rows = StepLayerRows(layers);
  std::vector<StepLayerKind> kinds;
  for (const StepLayer& layer : layers) kinds.push_back(layer.kind);
  ASSIGN_OR_RETURN(auto writer,
                   RecordWriter::Create(path, RunOf(run), environment, rows, options.overwrite));
  return std::make_unique<QueueStepRecorder>(run, std::move(rows), std::move(kinds),
                                             Recorder::Start(std::move(writer), queue));
}

}  // namespace verbatim
