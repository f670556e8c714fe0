// Whoever writes a record holds a lock on its file meanwhile, so that no other process writes it
// too. Readers do not ask for it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/status.h"

namespace verbatim {

/// An exclusive flock, held until this goes or its process ends, in whatever way. It must be taken
/// before SQLite opens the file and go after SQLite has closed it: when a process closes any
/// descriptor of a file, the system drops the locks of another kind that SQLite has there.
class WriterLock {
 public:
  /// kBadInput where the file cannot be opened, kFailed where another process writes the record.
  static Result<std::unique_ptr<WriterLock>> Take(const std::filesystem::path& path);
  /// kFailed where `path` no longer leads to the locked file: it was removed, moved or replaced,
  /// which neither SQLite nor the system would tell whoever goes on writing it.
  Status CheckStillAt(const std::filesystem::path& path) const;
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  explicit WriterLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

/// The error of a record that somebody else has open for writing.
tl::unexpected<Error> InUse(const std::filesystem::path& path);

}  // namespace verbatim
