// Writes one record. Whatever a call has returned OK for is committed.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/status.h"
#include "store/format.h"
#include "store/record.h"

namespace verbatim {

/// Not thread-safe: one thread at a time. Errors are kFailed (disk, lock, permission) with the file
/// and what to do; after an error the record holds everything committed before and stays readable.
class RecordWriter {
 public:
  /// Creates `path` and writes the run's head rows in one transaction, under another name until
  /// the record is whole. kUsage where the path exists (unless `overwrite`, which replaces an old
  /// record together with its -wal and -shm only once the new one is whole; a file that is not a
  /// record is never replaced), is a directory, or its folder does not exist; kFailed where it
  /// cannot be written, or another process still writes the old record.
  ///
  /// Of `run`, `status`, `ended_utc` and `status_detail` are not used: the run starts running.
  /// `busy_timeout_ms`: how long each call waits for another connection's lock before it fails.
  static Result<std::unique_ptr<RecordWriter>> Create(
      const std::filesystem::path& path, const RunInfo& run,
      std::span<const EnvironmentRow> environment, std::span<const LayerRow> layers, bool overwrite,
      std::int32_t busy_timeout_ms = kBusyTimeoutMs);
  /// Without Close the run stays "running".
  virtual ~RecordWriter() = default;

  /// Commits finished subnets, in any order, in one transaction: all of them or, on an error,
  /// none. Digests are written as they come, content_digest too. CHECKs that seq is in the range of
  /// store/format.h and accesses name known layers.
  virtual Status WriteSubnets(std::span<const SubnetRow> subnets) = 0;
  virtual Status WriteEvaluations(std::span<const EvaluationRow> evaluations) = 0;
  /// Writes status and end time, and closes the file; nothing may be called after it. One file is
  /// left, unless somebody is reading the record at that moment. OK means safe on disk.
  virtual Status Close(RunStatus status, const std::string& detail) = 0;
};

}  // namespace verbatim
