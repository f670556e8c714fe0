#include "store/writer_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace verbatim {

namespace fs = std::filesystem;

tl::unexpected<Error> InUse(const fs::path& path) {
  return Failed(fmt::format("{} is in use: another process writes this record", path.string()),
                "wait until that process ends (fuser FILE shows it), or choose another path");
}

Result<std::unique_ptr<WriterLock>> WriterLock::Take(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return BadInput(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)),
        "check the path and its permissions");
  }
  std::unique_ptr<WriterLock> lock(new WriterLock(descriptor));
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return InUse(path);
  return Failed(
      fmt::format("cannot lock {}: {}", path.string(), std::generic_category().message(errno)),
      "record to a local disk");
}

Status WriterLock::CheckStillAt(const fs::path& path) const {
  struct stat locked;
  struct stat named;
  const bool is_there = fstat(descriptor_, &locked) == 0 && stat(path.c_str(), &named) == 0;
  if (is_there && locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) return {};
  return Failed(fmt::format("cannot write {}: the file was {} while it was being written",
                            path.string(), is_there ? "replaced" : "removed"),
                "what was recorded is lost unless the file was moved; train the spec again");
}

WriterLock::~WriterLock() {
  // A child that was forked meanwhile has the descriptor too, and would keep the lock.
  flock(descriptor_, LOCK_UN);
  close(descriptor_);
}

}  // namespace verbatim
