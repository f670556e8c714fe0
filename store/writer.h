// Writes one record. Whatever a call has returned OK for is committed.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/status.h"
#include "store/record.h"

namespace verbatim {

/// Not thread-safe: one thread at a time. Errors are kFailed (disk, lock, permission) with the file
/// and what to do; after an error the record holds everything committed before and stays readable.
class RecordWriter {
 public:
  /// Creates `path` and writes the run's head rows in one transaction. kUsage where the path exists
  /// (unless `overwrite`, which removes the old record with its -wal and -shm only once the new
  /// one can be created), is a directory, or its folder does not exist; kFailed where it cannot be
  /// written.
  static Result<std::unique_ptr<RecordWriter>> Create(const std::filesystem::path& path,
                                                      const RunInfo& run,
                                                      std::span<const EnvironmentRow> environment,
                                                      std::span<const LayerRow> layers,
                                                      bool overwrite);
  virtual ~RecordWriter() = default;

  /// Commits finished subnets, in any order, in one transaction.
  virtual Status WriteSubnets(std::span<const SubnetRow> subnets) = 0;
  virtual Status WriteEvaluations(std::span<const EvaluationRow> evaluations) = 0;
  /// Writes status and end time, checkpoints the WAL so that one file is left, and closes it.
  virtual Status Close(RunStatus status, const std::string& detail) = 0;
};

}  // namespace verbatim
