#include "trainer/checkpoint_writer.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/exception_text.h"
#include "trainer/layer_file.h"

namespace verbatim {

CheckpointWriter::CheckpointWriter(CheckpointSink& sink, const OptimizerSpec& optimizer,
                                   std::int64_t bytes_max)
    : sink_(sink),
      optimizer_(optimizer),
      bytes_max_(bytes_max),
      thread_([this] { WriteUntilStopped(); }) {}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    jobs_.clear();
  }
  Stop();
}

void CheckpointWriter::Add(std::shared_ptr<CapturedLayer> layer, bool waits) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    bytes_ += layer->bytes;
    jobs_.push_back({std::move(layer), {}});
    has_work_.notify_one();
  }
  if (waits) (void)WaitForRoom();
}

Status CheckpointWriter::WaitForRoom() {
  {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return error_ || bytes_ <= bytes_max_; });
  }
  return status();
}

void CheckpointWriter::Finish(CapturedCheckpoint checkpoint) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  jobs_.push_back({nullptr, std::move(checkpoint)});
  has_work_.notify_one();
}

Status CheckpointWriter::status() const {
  const std::lock_guard lock(mutex_);
  return error_ ? Status(tl::unexpected(*error_)) : Status();
}

Status CheckpointWriter::Close() {
  Stop();
  return status();
}

void CheckpointWriter::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  has_work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::WriteUntilStopped() {
  try {
    while (auto job = NextJob()) {
      if (Status written = Write(*job); !written) return Fail(written.error());
    }
  } catch (const std::exception& error) {  // no memory left
    Fail(Error{ErrorKind::kFailed,
               fmt::format("a checkpoint could not be written: {}", ExceptionText(error)), ""});
  }
}

std::optional<CheckpointWriter::Job> CheckpointWriter::NextJob() {
  std::unique_lock lock(mutex_);
  has_work_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
  if (jobs_.empty()) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

Status CheckpointWriter::Write(Job& job) {
  if (job.layer) {
    RETURN_IF_ERROR(WriteLayer(*job.layer));
    const std::lock_guard lock(mutex_);
    bytes_ -= job.layer->bytes;
    has_room_.notify_all();
    return {};
  }
  CheckpointRow row;
  row.cut = job.checkpoint.cut;
  for (const auto& layer : job.checkpoint.layers) {
    // A stage hands a layer over before it adds it.
    RETURN_IF_ERROR(WriteLayer(*layer));
    row.layers.push_back({layer->state.version, *layer->file});
  }
  return sink_.WriteCheckpoint(std::move(row));
}

Status CheckpointWriter::WriteLayer(CapturedLayer& layer) {
  if (layer.file) return {};
  const StoredTensors stored = DescribeLayerState(*layer.layer, optimizer_, layer.state);
  ASSIGN_OR_RETURN(layer.file, sink_.WriteLayer(EncodeSafetensors(stored)));
  DropTensors(layer.state);
  return {};
}

void CheckpointWriter::Fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  jobs_.clear();
  has_room_.notify_all();
}

}  // namespace verbatim
