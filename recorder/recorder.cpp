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

  Status Close(RunStatus status, const std::string& detail,
               std::span<const EvaluationRow> evaluations) override;

 private:
  struct Entry {
    SubnetRow subnet;
    Clock::time_point queued;
  };

  Status Push(SubnetRow&& subnet);
  void WriteUntilStopped();
  std::vector<SubnetRow> WaitForBatch();
  void Fail(const Error& error);
  void Stop();

  const RecorderOptions options_;
  const std::size_t batch_max_;
  std::unique_ptr<RecordWriter> writer_;  // the writer thread's, until that has ended
  SubnetAssembler assembler_;

  std::mutex mutex_;
  std::condition_variable has_room_;  // or has failed
  std::condition_variable has_work_;  // or is stopping
  std::deque<Entry> queue_;
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
  // The writer wakes for the first subnet, to take its time, and for a whole batch.
  if (queue_.size() == 1 || queue_.size() == batch_max_) has_work_.notify_one();
  return {};
}

void QueueRecorder::WriteUntilStopped() {
  try {
    while (true) {
      const std::vector<SubnetRow> batch = WaitForBatch();
      if (batch.empty()) return;
      if (Status written = writer_->WriteSubnets(batch); !written) return Fail(written.error());
    }
  } catch (const std::exception& error) {  // no memory left
    Fail(Error{ErrorKind::kFailed, fmt::format("the recorder stopped: {}", error.what()), ""});
  }
}

// Empty when the recorder is stopping and nothing is left.
std::vector<SubnetRow> QueueRecorder::WaitForBatch() {
  std::unique_lock lock(mutex_);
  has_work_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
  if (!queue_.empty()) {
    const auto deadline =
        queue_.front().queued + std::chrono::milliseconds(options_.commit_interval_ms);
    has_work_.wait_until(lock, deadline,
                         [this] { return is_stopping_ || queue_.size() >= batch_max_; });
  }
  std::vector<SubnetRow> batch;
  while (!queue_.empty() && batch.size() < batch_max_) {
    batch.push_back(std::move(queue_.front().subnet));
    queue_.pop_front();
  }
  has_room_.notify_all();
  return batch;
}

void QueueRecorder::Fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  error_ = error;
  queue_.clear();
  has_room_.notify_all();
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
  if (!error_ && !evaluations.empty()) {
    if (Status written = writer_->WriteEvaluations(evaluations); !written) Fail(written.error());
  }
  if (!error_) return writer_->Close(status, detail);
  // Best effort: what stopped the rows may stop this as well.
  static_cast<void>(writer_->Close(RunStatus::kFailed, "recording failed: " + error_->message));
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
