// Writes one record. Whatever a call has returned OK for is committed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "store/format.h"
#include "store/head.h"
#include "store/record.h"

namespace verbatim {

/// Not thread-safe: one thread at a time. Errors are kFailed (disk, lock, permission) with the file
/// and what to do; after an error the record holds everything committed before and stays readable.
/// While a writer lives, no other one can be had of the same record, in any process.
class RecordWriter {
 public:
  /// Creates `path` and writes the run's head rows in one transaction, under another name until
  /// the record is whole. kUsage where the path exists (unless `overwrite`, which replaces an old
  /// record together with its -wal and -shm only once the new one is whole; a file that is not a
  /// record is never replaced), is a directory, or its folder does not exist; kFailed where it
  /// cannot be written, or another process still writes the old record.
  ///
  /// Of `run`, `kind` says which schema the record has; `status`, `ended_utc` and `status_detail`
  /// are not used: the run starts running. `busy_timeout_ms`: how long each call waits for another
  /// connection's lock before it fails.
  static Result<std::unique_ptr<RecordWriter>> Create(
      const std::filesystem::path& path, const RunInfo& run,
      std::span<const EnvironmentRow> environment, std::span<const LayerRow> layers, bool overwrite,
      std::int32_t busy_timeout_ms = kBusyTimeoutMs);
  /// Goes on with a record that a run left, however that ended: adds `resumption`, whose number it
  /// sets to the next one, drops the checkpoints above its cut, which could not be used, and sets
  /// the status to running, in one transaction. Subnets that are
  /// recorded must not be written again. RecordReader's errors, also where tables or views are not
  /// those of a run; kUsage of a step run, which another program would have to go on with; kFailed
  /// where another process writes the record, or it cannot be written.
  ///
  /// `subnets_seen`: how many subnets the caller found in the record, whose run was not complete.
  /// Where that is so no longer, another process has written it since: kFailed, and the record
  /// stays as it is.
  static Result<std::unique_ptr<RecordWriter>> Reopen(
      const std::filesystem::path& path, const ResumptionRow& resumption,
      std::optional<std::int64_t> subnets_seen = std::nullopt,
      std::int32_t busy_timeout_ms = kBusyTimeoutMs);
  /// Without Close the run stays "running".
  virtual ~RecordWriter() = default;

  /// Commits finished subnets, in any order, in one transaction: all of them or, on an error,
  /// none; the nodes of the trees that they complete with them. Leaves are written as they come.
  /// kFailed where one is recorded already. CHECKs that rows have a step in a step run and else
  /// none, numbers are in the range of store/format.h,
  /// rows in a record's order, and accesses name known layers.
  virtual Status WriteSubnets(std::span<const SubnetRow> subnets) = 0;
  /// Commits a checkpoint (in place of one with the same cut) and deletes all but the `keep` >= 1
  /// with the greatest cuts. OK means safe on disk, together with all that was committed before.
  virtual Status WriteCheckpoint(const CheckpointRow& checkpoint, std::int64_t keep) = 0;
  /// Of what is committed; after Close with the run's end.
  virtual Head CurrentHead() const = 0;
  /// Writes evaluations, status and end time in one transaction, so that no killed run can leave a
  /// part of them, and closes the file; nothing but CurrentHead may be called after it. One file is
  /// left, unless somebody is reading the record at that moment. OK means safe on disk.
  virtual Status Close(RunStatus status, const std::string& detail,
                       std::span<const EvaluationRow> evaluations = {}) = 0;
};

}  // namespace verbatim
