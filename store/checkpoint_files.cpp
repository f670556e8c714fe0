#include "store/checkpoint_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "base/descriptor.h"
#include "base/durable_file.h"
#include "store/merkle.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kPartialSuffix = ".safetensors.partial";

/// The hash in a file's name; nothing where the name is no checkpoint file's.
std::optional<Hash256> HashInName(const std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const std::string hex = name.substr(0, name.size() - suffix.size());
  const auto hash = Hash256FromHex(hex);
  if (!hash || ToHex(*hash) != hex) return std::nullopt;
  return hash;
}

tl::unexpected<Error> CannotRead(const fs::path& path, int error) {
  return Failed(
      fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)),
      "check the permissions of the file and of its folder");
}

/// Names in a folder; none where it does not exist.
Result<std::vector<std::string>> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return CannotRead(folder, error.value());
  return names;
}

Result<std::string> ReadAll(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return BadInput(fmt::format("the checkpoint file {} is missing", path.string()),
                    "restore it from a copy, or use another checkpoint");
  }
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) return CannotRead(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return BadInput(fmt::format("{} is not a regular file", path.string()),
                    "restore the checkpoint file from a copy");
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file.number(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(path, errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

fs::path CheckpointFolder(const fs::path& record) {
  std::error_code error;
  const fs::path file = fs::weakly_canonical(fs::absolute(record, error), error);
  return (error ? record : file).string() + ".checkpoints";
}

Status CheckCheckpointFolder(const fs::path& folder) {
  std::error_code error;
  const bool is_there = fs::exists(fs::symlink_status(folder, error));
  if (!is_there || fs::is_directory(folder, error)) return {};
  return UsageError(
      fmt::format("{} is in the way: it is no folder, and checkpoints are kept in one of that name",
                  folder.string()),
      "Move it away, or name another record.");
}

std::string CheckpointFileName(const Hash256& file) {
  return ToHex(file) + std::string(kSuffix);
}

Result<CheckpointFiles> CheckpointFiles::Open(const fs::path& folder) {
  RETURN_IF_ERROR(MakeFolder(folder));
  ASSIGN_OR_RETURN(const auto names, NamesIn(folder));
  for (const std::string& name : names) {
    if (HashInName(name, kPartialSuffix)) RETURN_IF_ERROR(RemoveFile(folder / name));
  }
  return CheckpointFiles(folder);
}

Result<Hash256> CheckpointFiles::Write(const EncodedTensors& tensors) {
  const std::vector<std::string_view> pieces = tensors.Pieces();
  const Hash256 file = Blake2bOfPieces(pieces);
  RETURN_IF_ERROR(WriteDurably(folder_ / CheckpointFileName(file), pieces));
  awaited_.insert(file);
  return file;
}

Status CheckpointFiles::RemoveUnnamed(std::span<const CheckpointRow> rows) {
  std::set<Hash256> named;
  for (const CheckpointRow& row : rows) {
    for (const CheckpointLayer& layer : row.layers) named.insert(layer.file);
  }
  std::erase_if(awaited_, [&](const Hash256& file) { return named.contains(file); });
  ASSIGN_OR_RETURN(const std::vector<Hash256> files, ListCheckpointFiles(folder_));
  for (const Hash256& file : files) {
    if (named.contains(file) || awaited_.contains(file)) continue;
    RETURN_IF_ERROR(RemoveFile(folder_ / CheckpointFileName(file)));
  }
  return {};
}

Result<std::vector<Hash256>> ListCheckpointFiles(const fs::path& folder) {
  ASSIGN_OR_RETURN(const auto names, NamesIn(folder));
  std::vector<Hash256> files;
  for (const std::string& name : names) {
    if (const auto hash = HashInName(name, kSuffix)) files.push_back(*hash);
  }
  return files;
}

Result<std::string> ReadCheckpointFile(const fs::path& folder, const Hash256& file) {
  const fs::path path = folder / CheckpointFileName(file);
  ASSIGN_OR_RETURN(std::string bytes, ReadAll(path));
  if (Blake2b(bytes) == file) return bytes;
  return BadInput(
      fmt::format("the checkpoint file {} is damaged: its bytes do not have the hash in its name",
                  path.string()),
      "restore it from a copy, or use another checkpoint");
}

Status RemoveCheckpoints(const fs::path& folder) {
  ASSIGN_OR_RETURN(const auto names, NamesIn(folder));
  for (const std::string& name : names) {
    if (!HashInName(name, kSuffix) && !HashInName(name, kPartialSuffix)) continue;
    RETURN_IF_ERROR(RemoveFile(folder / name));
  }
  std::error_code not_empty;
  fs::remove(folder, not_empty);
  return {};
}

}  // namespace verbatim
