// Files that must outlive a crash or a power cut: every system call that writes one is here, and
// each is checked. Errors are kFailed with the path, what the system said and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/status.h"

namespace verbatim {

/// A file open for writing. One thread at a time. Without Sync, what was written may be lost with
/// the machine's power; without Close, an error that only closing tells may be missed.
class DurableFile {
 public:
  /// A new file in place of whatever bears the name.
  static Result<DurableFile> Create(const std::filesystem::path& path);
  /// Goes on at the end of a file, which is made where there is none.
  static Result<DurableFile> Append(const std::filesystem::path& path);

  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  /// All of the bytes, or an error; after an error some of them may be in the file.
  Status Write(std::string_view bytes);
  /// What was written is on the disk once this returns OK. The file's name may not be: SyncFolder.
  Status Sync();
  /// Once; nothing may be called after it.
  Status Close();

 private:
  DurableFile(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Makes names that were given, changed or removed in a folder last. A file system that cannot do
/// that is no error.
Status SyncFolder(const std::filesystem::path& folder);

/// Makes `path`, whole and on the disk, of these pieces, in place of what bears the name: at every
/// moment, through a crash too, there is the old file or the new one. Meanwhile the bytes are in
/// `path` with ".partial" appended, which is removed where anything fails.
Status WriteDurably(const std::filesystem::path& path, std::span<const std::string_view> pieces);

/// A folder, also where it exists already; its parent must exist.
Status MakeFolder(const std::filesystem::path& folder);

/// Leaves the first `size` bytes of a file that has at least as many, and no others on the disk.
Status CutFile(const std::filesystem::path& path, std::uint64_t size);

/// A file that does not exist is no error.
Status RemoveFile(const std::filesystem::path& path);

}  // namespace verbatim
