#include "base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

const char* HintFor(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space on its disk";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of its folder";
    case EROFS:
      return "its disk is mounted read-only: make it writable, or choose another";
    case EIO:
      return "the disk reports an error: check it before anything else";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case ENOENT:
    case ENOTDIR:
      return "check that its folder is still there";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "check the disk and the permissions of the folder";
  }
}

tl::unexpected<Error> Cannot(const char* what, const fs::path& path, int error) {
  return Failed(
      fmt::format("cannot {} {}: {}", what, path.string(), std::generic_category().message(error)),
      HintFor(error));
}

Result<int> Open(const fs::path& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return Cannot("create", path, errno);
  return descriptor;
}

Status Rename(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return Cannot("create", to, errno);
  return {};
}

Status WriteAndSync(const fs::path& path, std::span<const std::string_view> pieces) {
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path));
  for (const std::string_view piece : pieces) RETURN_IF_ERROR(file.Write(piece));
  RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

Status WriteAndRename(const fs::path& draft, const fs::path& path,
                      std::span<const std::string_view> pieces) {
  RETURN_IF_ERROR(WriteAndSync(draft, pieces));
  return Rename(draft, path);
}

}  // namespace

DurableFile::DurableFile(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<DurableFile> DurableFile::Create(const fs::path& path) {
  ASSIGN_OR_RETURN(const int descriptor, Open(path, O_TRUNC));
  return DurableFile(path, descriptor);
}

Result<DurableFile> DurableFile::Append(const fs::path& path) {
  ASSIGN_OR_RETURN(const int descriptor, Open(path, O_APPEND));
  return DurableFile(path, descriptor);
}

Status DurableFile::Write(std::string_view bytes) {
  VERBATIM_CHECK(descriptor_ >= 0, "{} is closed", path_.string());
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Cannot("write", path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status DurableFile::Sync() {
  VERBATIM_CHECK(descriptor_ >= 0, "{} is closed", path_.string());
  // What is no file on a disk, such as /dev/null, cannot be synced.
  if (fsync(descriptor_) != 0 && errno != EINVAL) return Cannot("write", path_, errno);
  return {};
}

Status DurableFile::Close() {
  VERBATIM_CHECK(descriptor_ >= 0, "{} is closed", path_.string());
  // On Linux the descriptor is gone even where EINTR is told.
  if (close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    return Cannot("write", path_, errno);
  }
  return {};
}

Status SyncFolder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Cannot("open the folder", folder, errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (error != 0 && error != EINVAL) return Cannot("write the folder", folder, error);
  return {};
}

Status WriteDurably(const fs::path& path, std::span<const std::string_view> pieces) {
  const fs::path draft = path.string() + ".partial";
  if (Status written = WriteAndRename(draft, path, pieces); !written) {
    unlink(draft.c_str());
    return written;
  }
  const fs::path folder = path.parent_path();
  return SyncFolder(folder.empty() ? fs::path(".") : folder);
}

Status MakeFolder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0777) == 0) {
    const fs::path parent = folder.parent_path();
    return SyncFolder(parent.empty() ? fs::path(".") : parent);
  }
  const int error = errno;
  std::error_code ignored;
  if (error == EEXIST && fs::is_directory(folder, ignored)) return {};
  return Cannot("make the folder", folder, error);
}

Status CutFile(const fs::path& path, std::uint64_t size) {
  if (truncate(path.c_str(), static_cast<off_t>(size)) != 0) return Cannot("cut", path, errno);
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Append(path));
  RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

Status RemoveFile(const fs::path& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Cannot("remove", path, errno);
  return {};
}

}  // namespace verbatim
