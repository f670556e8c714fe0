#include "recorder/part_recorder.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class QueuePartRecorder final : public PartRecorder {
 public:
  QueuePartRecorder(DurableFile file, const PartRecorderOptions& options)
      : options_(options), file_(std::move(file)), thread_([this] { WriteUntilStopped(); }) {}

  ~QueuePartRecorder() override { Stop(); }

  Status AddPart(std::int64_t seq, std::string report) override;
  Status WaitForRoom() override;
  Status Close() override;

 private:
  void WriteUntilStopped();
  Status WriteAll();
  void Stop();
  Status status() const { return error_ ? Status(tl::unexpected(*error_)) : Status(); }

  const PartRecorderOptions options_;
  DurableFile file_;  // the thread's, until that has ended

  std::mutex mutex_;
  std::condition_variable has_room_;  // or has failed
  std::condition_variable has_work_;  // or is stopping
  std::string queue_;                 // frames
  std::size_t queued_ = 0;            // how many
  bool is_stopping_ = false;
  std::optional<Error> error_;

  std::thread thread_;  // last, so that it starts when all else stands
};

Status QueuePartRecorder::AddPart(std::int64_t seq, std::string report) {
  const std::string frame = EncodeFrame(seq, report);
  const std::scoped_lock lock(mutex_);
  if (error_) return status();
  VERBATIM_CHECK(!is_stopping_, "subnet {} finished after its file was closed", seq);
  queue_ += frame;
  ++queued_;
  has_work_.notify_one();
  return {};
}

Status QueuePartRecorder::WaitForRoom() {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] { return error_ || queued_ < options_.queue_capacity; });
  return status();
}

void QueuePartRecorder::WriteUntilStopped() {
  Status written;
  try {
    written = WriteAll();
  } catch (const std::exception& error) {  // no memory left
    written = Failed(fmt::format("this rank's part is kept no longer: {}", error.what()));
  }
  if (written) return;
  const std::scoped_lock lock(mutex_);
  error_ = written.error();
  has_room_.notify_all();
}

Status QueuePartRecorder::WriteAll() {
  const std::chrono::milliseconds interval(options_.commit_interval_ms);
  Clock::time_point sync_at{};
  bool is_synced = true;
  while (true) {
    std::string frames;
    bool is_last = false;
    {
      std::unique_lock lock(mutex_);
      const auto has_work = [this] { return is_stopping_ || !queue_.empty(); };
      if (is_synced) {
        has_work_.wait(lock, has_work);
      } else {
        has_work_.wait_until(lock, sync_at, has_work);
      }
      frames.swap(queue_);
      queued_ = 0;
      is_last = is_stopping_;
      has_room_.notify_all();
    }
    RETURN_IF_ERROR(file_.Write(frames));
    if (!frames.empty() && is_synced) sync_at = Clock::now() + interval;
    is_synced = is_synced && frames.empty();
    if (!is_synced && (is_last || Clock::now() >= sync_at)) {
      RETURN_IF_ERROR(file_.Sync());
      is_synced = true;
    }
    if (is_last) return {};
  }
}

void QueuePartRecorder::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  has_work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status QueuePartRecorder::Close() {
  VERBATIM_CHECK(thread_.joinable(), "a rank's part was closed twice");
  Stop();
  const Status closed = file_.Close();
  return error_ ? status() : closed;
}

/// The file was found, whole, at its path: goes on behind what it has.
Result<std::unique_ptr<PartRecorder>> StartAt(const fs::path& path,
                                              const PartRecorderOptions& options) {
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Append(path));
  return PartRecorder::Start(std::move(file), options);
}

Status CheckSession(const PartReader& reader, const PartSession& session) {
  const PartSession& found = reader.session();
  if (found.spec == session.spec && found.rank == session.rank) return {};
  const std::string whose = found.spec != session.spec ? "of a run with another spec"
                                                       : fmt::format("of rank {}, not of rank {}",
                                                                     found.rank, session.rank);
  return UsageError(fmt::format("{} is {}", reader.file(), whose),
                    "Move it away, if it is still needed, or remove it yourself.");
}

}  // namespace

Status PartRecorder::CheckNew(const fs::path& path, bool overwrite) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  if (!overwrite) {
    return UsageError(
        fmt::format("{} exists already: an earlier run's part of this rank", path.string()),
        "Name another record, move the file away, or remove it yourself.");
  }
  if (PartReader::Open(path)) return {};
  return UsageError(
      fmt::format("{} is no rank's part file, so it is not overwritten", path.string()),
      "Name another record, move the file away, or remove it yourself.");
}

Result<std::unique_ptr<PartRecorder>> PartRecorder::Create(const fs::path& path,
                                                           const PartSession& session,
                                                           bool overwrite,
                                                           const PartRecorderOptions& options) {
  RETURN_IF_ERROR(CheckNew(path, overwrite));
  const std::string head = EncodePartHead();
  const std::string frame = EncodeFrame(session);
  RETURN_IF_ERROR(WriteDurably(path, std::array<std::string_view, 2>{head, frame}));
  return StartAt(path, options);
}

Result<std::unique_ptr<PartRecorder>> PartRecorder::Reopen(const fs::path& path,
                                                           const PartSession& session,
                                                           const PartRecorderOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) return Create(path, session, false, options);
  ASSIGN_OR_RETURN(PartReader reader, PartReader::Open(path));
  RETURN_IF_ERROR(CheckSession(reader, session));
  while (true) {
    ASSIGN_OR_RETURN(const auto part, reader.Next());
    if (!part) break;
  }
  RETURN_IF_ERROR(CutFile(path, reader.sound_bytes()));
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Append(path));
  RETURN_IF_ERROR(file.Write(EncodeFrame(session)));
  RETURN_IF_ERROR(file.Sync());
  return Start(std::move(file), options);
}

std::unique_ptr<PartRecorder> PartRecorder::Start(DurableFile file,
                                                  const PartRecorderOptions& options) {
  VERBATIM_CHECK(options.queue_capacity > 0 && options.commit_interval_ms >= 0);
  return std::make_unique<QueuePartRecorder>(std::move(file), options);
}

}  // namespace verbatim
