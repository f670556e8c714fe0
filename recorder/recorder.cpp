#include "recorder/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "recorder/subnet_assembler.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

class QueueRecorder final : public Recorder {
 public:
  QueueRecorder(std::unique_ptr<RecordWriter> writer, const RecorderOptions& options)
      : options_(options),
        batch_max_(std::min(options.batch_max, options.queue_capacity)),
        writer_(std::move(writer)),
        assembler_([this](SubnetRow&& subnet) { return Push(std::move(subnet)); }),
        subnets_under_heads_(options_.on_head ? writer_->CurrentHead().subnets : 0),
        thread_([this] { WriteUntilStopped(); }) {}

  ~QueueRecorder() override { Stop(); }

  void OnSubnetStarted(std::int64_t seq, std::vector<std::uint16_t> choices,
                       std::vector<std::uint32_t> samples) override {
    assembler_.OnSubnetStarted(seq, std::move(choices), std::move(samples));
  }
  void OnBatch(std::int64_t seq, const Digest& batch) override { assembler_.OnBatch(seq, batch); }
  void OnAccess(std::int64_t seq, const AccessRow& access) override {
    assembler_.OnAccess(seq, access);
  }
  void OnActivation(std::int64_t seq, const ActivationRow& activation) override {
    assembler_.OnActivation(seq, activation);
  }
  void OnActivity(std::int64_t seq, const ActivityRow& activity) override {
    assembler_.OnActivity(seq, activity);
  }
  void OnLoss(std::int64_t seq, float loss) override { assembler_.OnLoss(seq, loss); }
  Status OnSubnetFinished(std::int64_t seq) override { return assembler_.OnSubnetFinished(seq); }

  Status AddSubnet(SubnetRow&& subnet) override { return Push(std::move(subnet)); }
  Status AddCheckpoint(const CheckpointRow& row, std::int64_t keep) override;

  Status Close(RunStatus status, const std::string& detail,
               std::span<const EvaluationRow> evaluations) override;

 private:
  struct Entry {
    SubnetRow subnet;
    Clock::time_point queued;
  };

  /// A checkpoint that waits to be committed after so many subnets.
  struct PendingCheckpoint {
    const CheckpointRow* row;
    std::int64_t keep;
    std::int64_t after;
  };
  /// What the writer does next: nothing of either when the recorder is stopping and all is done.
  struct Batch {
    std::vector<SubnetRow> subnets;
    std::optional<PendingCheckpoint> checkpoint;  ///< then this one
  };

  Status Push(SubnetRow&& subnet);
  void WriteUntilStopped();
  Batch WaitForBatch();
  Status Write(const Batch& batch);
  Status KeepHead();
  void Fail(const Error& error);
  void Stop();

  const RecorderOptions options_;
  const std::size_t batch_max_;
  std::unique_ptr<RecordWriter> writer_;  // the writer thread's, until that has ended
  SubnetAssembler assembler_;
  std::int64_t subnets_under_heads_;  // likewise

  std::mutex mutex_;
  std::condition_variable has_room_;         // or has failed
  std::condition_variable has_work_;         // or is stopping
  std::condition_variable checkpoint_done_;  // or has failed
  std::deque<Entry> queue_;
  std::int64_t pushed_ = 0;  // subnets so far
  std::int64_t taken_ = 0;   // of them, by the writer
  std::optional<PendingCheckpoint> checkpoint_;
  bool is_stopping_ = false;
  std::optional<Error> error_;

  std::thread thread_;  // last, so that it starts when all else stands
};

Status QueueRecorder::Push(SubnetRow&& subnet) {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] { return error_ || queue_.size() < options_.queue_capacity; });
  if (error_) return tl::unexpected(*error_);
  VERBATIM_CHECK(!is_stopping_, "subnet {} finished after the recorder was closed", subnet.seq);
  queue_.push_back({std::move(subnet), Clock::now()});
  ++pushed_;
  // The writer wakes for the first subnet, to take its time, and for a whole batch.
  if (queue_.size() == 1 || queue_.size() == batch_max_) has_work_.notify_one();
  return {};
}

Status QueueRecorder::AddCheckpoint(const CheckpointRow& row, std::int64_t keep) {
  std::unique_lock lock(mutex_);
  VERBATIM_CHECK(!checkpoint_ && !is_stopping_, "checkpoint {} comes beside another, or late",
                 row.cut);
  if (error_) return tl::unexpected(*error_);
  checkpoint_ = {&row, keep, pushed_};
  has_work_.notify_one();
  checkpoint_done_.wait(lock, [this] { return error_ || !checkpoint_; });
  checkpoint_.reset();
  return error_ ? Status(tl::unexpected(*error_)) : Status();
}

void QueueRecorder::WriteUntilStopped() {
  try {
    while (true) {
      const Batch batch = WaitForBatch();
      if (batch.subnets.empty() && !batch.checkpoint) return;
      if (Status written = Write(batch); !written) return Fail(written.error());
    }
  } catch (const std::exception& error) {  // no memory left
    Fail(Error{ErrorKind::kFailed, fmt::format("the recorder stopped: {}", error.what()), ""});
  }
}

Status QueueRecorder::Write(const Batch& batch) {
  if (!batch.subnets.empty()) {
    RETURN_IF_ERROR(writer_->WriteSubnets(batch.subnets));
    RETURN_IF_ERROR(KeepHead());
  }
  if (!batch.checkpoint) return {};
  RETURN_IF_ERROR(writer_->WriteCheckpoint(*batch.checkpoint->row, batch.checkpoint->keep));
  const std::scoped_lock lock(mutex_);
  checkpoint_.reset();
  checkpoint_done_.notify_all();
  return {};
}

Status QueueRecorder::KeepHead() {
  if (!options_.on_head || options_.head_every == 0) return {};
  const Head head = writer_->CurrentHead();
  const std::int64_t every = options_.head_every;
  if (head.subnets / every == subnets_under_heads_ / every) return {};
  subnets_under_heads_ = head.subnets;
  return options_.on_head(head);
}

QueueRecorder::Batch QueueRecorder::WaitForBatch() {
  std::unique_lock lock(mutex_);
  has_work_.wait(lock, [this] { return is_stopping_ || checkpoint_ || !queue_.empty(); });
  if (!queue_.empty()) {
    const auto deadline =
        queue_.front().queued + std::chrono::milliseconds(options_.commit_interval_ms);
    has_work_.wait_until(lock, deadline, [this] {
      return is_stopping_ || checkpoint_ || queue_.size() >= batch_max_;
    });
  }
  Batch batch;
  while (!queue_.empty() && batch.subnets.size() < batch_max_) {
    batch.subnets.push_back(std::move(queue_.front().subnet));
    queue_.pop_front();
    ++taken_;
  }
  if (checkpoint_ && taken_ >= checkpoint_->after) batch.checkpoint = checkpoint_;
  has_room_.notify_all();
  return batch;
}

void QueueRecorder::Fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  error_ = error;
  queue_.clear();
  has_room_.notify_all();
  checkpoint_done_.notify_all();
}

void QueueRecorder::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  has_work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status QueueRecorder::Close(RunStatus status, const std::string& detail,
                            std::span<const EvaluationRow> evaluations) {
  VERBATIM_CHECK(thread_.joinable(), "the recorder was closed twice");
  Stop();
  if (!error_) {
    RETURN_IF_ERROR(writer_->Close(status, detail, evaluations));
    return options_.on_head ? options_.on_head(writer_->CurrentHead()) : Status();
  }
  // Best effort: what stopped the rows may stop this as well.
  static_cast<void>(writer_->Close(RunStatus::kFailed, "recording failed: " + error_->message, {}));
  return tl::unexpected(*error_);
}

}  // namespace

std::unique_ptr<Recorder> Recorder::Start(std::unique_ptr<RecordWriter> writer,
                                          const RecorderOptions& options) {
  VERBATIM_CHECK(writer != nullptr);
  VERBATIM_CHECK(options.queue_capacity > 0 && options.batch_max > 0 &&
                 options.commit_interval_ms >= 0);
  return std::make_unique<QueueRecorder>(std::move(writer), options);
}

}  // namespace verbatim
