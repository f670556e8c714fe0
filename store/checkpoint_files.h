// The folder of a record's checkpoints: one file per layer and version, named by its hash
// (docs/format.md, "Checkpoints"). No SQL: the record's rows say which files make a checkpoint.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash256.h"
#include "base/status.h"
#include "store/record.h"
#include "store/safetensors.h"

namespace verbatim {

/// "RUN.db.checkpoints", beside the record; where that is a symbolic link, beside what it leads to.
std::filesystem::path CheckpointFolder(const std::filesystem::path& record);

/// kUsage where something else has the folder's name, so that it cannot be made.
Status CheckCheckpointFolder(const std::filesystem::path& folder);

/// "<64 hexadecimal digits>.safetensors".
std::string CheckpointFileName(const Hash256& file);

/// Writes one record's checkpoint files. One thread at a time, and one writer per folder. Errors
/// are kFailed (disk, permission), with the file and what to do.
class CheckpointFiles {
 public:
  /// Makes the folder where it does not exist, and removes what an interrupted write left there.
  static Result<CheckpointFiles> Open(const std::filesystem::path& folder);

  /// Writes a file, on the disk when this returns OK, and returns its hash. A file of that name is
  /// written anew: what lies there may be damaged.
  Result<Hash256> Write(const EncodedTensors& tensors);

  /// Removes every checkpoint file that none of these names, but for those that this object wrote
  /// and no row has named so far: they are of a checkpoint to come. To be called once the rows that
  /// named the others are gone from the record for good.
  Status RemoveUnnamed(std::span<const CheckpointRow> rows);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit CheckpointFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
  std::set<Hash256> awaited_;  ///< written, and not named by a row yet
};

/// The checkpoint files of a folder, in no order; none where there is no such folder.
Result<std::vector<Hash256>> ListCheckpointFiles(const std::filesystem::path& folder);

/// A whole file, checked against its name. kBadInput where it is missing or holds other bytes;
/// kFailed where it cannot be read.
Result<std::string> ReadCheckpointFile(const std::filesystem::path& folder, const Hash256& file);

/// Removes a folder's checkpoint files, and the folder where nothing else is in it.
Status RemoveCheckpoints(const std::filesystem::path& folder);

}  // namespace verbatim
