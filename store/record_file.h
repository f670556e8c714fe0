// A record as a file: what its first bytes say, and how a new one takes its place. No SQL; SQLite
// reads the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace verbatim {

/// What stands in the first 100 bytes of an SQLite file.
struct SqliteHeader {
  std::int32_t application_id = 0;
  std::int32_t user_version = 0;
};

/// kBadInput where the file is missing, no regular file, empty, cut short, or no SQLite file;
/// kFailed where it cannot be read.
Result<SqliteHeader> ReadSqliteHeader(const std::filesystem::path& path);

/// The files that SQLite may put beside `path`: -wal, -shm, -journal.
std::array<std::filesystem::path, 3> CompanionFiles(const std::filesystem::path& path);

/// Where a new record may go to: absolute, symbolic links resolved. kUsage where RecordWriter
/// says so, or where `overwrite` would destroy a file that is not a record.
Result<std::filesystem::path> CheckDestination(const std::filesystem::path& path, bool overwrite);

/// The error for a path that is taken.
tl::unexpected<Error> AlreadyExists(const std::filesystem::path& path);

/// The name, beside its destination, under which a new record is prepared. Removes what is left
/// there, unless it was published.
class DraftFile {
 public:
  explicit DraftFile(const std::filesystem::path& destination);
  ~DraftFile();
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Renames the draft to its destination: atomically, and onto no existing file unless
  /// `overwrite`. What SQLite left beside the destination's old file goes away with it.
  Status Publish(bool overwrite);

 private:
  std::filesystem::path destination_;
  std::filesystem::path path_;
};

}  // namespace verbatim
