#include "store/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/durable_file.h"
#include "store/format.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 100;
constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};
constexpr std::size_t kPageSizeOffset = 16;
constexpr std::size_t kReadVersionOffset = 19;
constexpr std::size_t kPageCountOffset = 28;
constexpr std::size_t kUserVersionOffset = 60;
constexpr std::size_t kApplicationIdOffset = 68;

std::string SystemMessage(int error) {
  return std::generic_category().message(error);
}

std::uint32_t BigEndian(const std::string& bytes, std::size_t offset, int width) {
  std::uint32_t value = 0;
  for (int i = 0; i < width; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[offset + i]);
  return value;
}

bool IsSqlite(const std::string& header) {
  return std::string_view(header).substr(0, kSqliteMagic.size()) == kSqliteMagic;
}

std::int32_t ApplicationId(const std::string& header) {
  return static_cast<std::int32_t>(BigEndian(header, kApplicationIdOffset, 4));
}

// Bytes that a file in rollback mode must have; SQLite would take missing ones for zeros. In WAL
// mode a checkpoint may be under way, so nothing is asked for.
std::uint64_t BytesExpected(const std::string& header) {
  if (header[kReadVersionOffset] != 1) return 0;
  const std::uint32_t page_size = BigEndian(header, kPageSizeOffset, 2);
  return std::uint64_t{page_size == 1 ? 65536 : page_size} * BigEndian(header, kPageCountOffset, 4);
}

Status CheckRegularFile(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return BadInput(fmt::format("{} does not exist", path.string()), "check the path");
  }
  if (error) {
    return Failed(fmt::format("cannot read {}: {}", path.string(), error.message()),
                  "check the permissions of its folder");
  }
  if (fs::is_directory(status)) {
    return BadInput(fmt::format("{} is a folder, not a record", path.string()),
                    "name the record's file");
  }
  if (!fs::is_regular_file(status)) {
    return BadInput(fmt::format("{} is not a regular file", path.string()), "check the path");
  }
  return {};
}

// Of the header, as far as the file has it. By a connection of SQLite's, for when a process closes
// a descriptor of a file, the system drops the locks that its connections have there; SQLite knows
// when to wait with that.
Result<std::string> ReadFirstBytes(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::string bytes(error ? 0 : std::min<std::uintmax_t>(size, kHeaderBytes), '\0');
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(fs::absolute(path).c_str(), &handle,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection(handle, sqlite3_close);
  sqlite3_file* file = nullptr;
  if (code == SQLITE_OK) {
    code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  }
  if (code == SQLITE_OK && !bytes.empty()) {
    code = file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0);
  }
  if (code == SQLITE_OK && !error) return bytes;
  const int system_error = error ? error.value() : sqlite3_system_errno(handle);
  return Failed(fmt::format("cannot read {}: {}", path.string(),
                            system_error != 0 ? SystemMessage(system_error) : sqlite3_errstr(code)),
                "check the permissions of the file");
}

// A damaged record may be replaced as well.
bool IsEmptyOrRecord(const fs::path& path) {
  const auto bytes = ReadFirstBytes(path);
  if (!bytes || (!bytes->empty() && bytes->size() < kHeaderBytes)) return false;
  return bytes->empty() || (IsSqlite(*bytes) && ApplicationId(*bytes) == kApplicationId);
}

Status CheckReplaceable(const fs::path& path, bool overwrite) {
  if (!fs::is_regular_file(fs::status(path))) {
    return UsageError(fmt::format("{} is not a regular file", path.string()),
                      "name a file for the record");
  }
  if (!overwrite) return AlreadyExists(path);
  if (!IsEmptyOrRecord(path)) {
    return UsageError(fmt::format("{} exists and is not a verbatim record", path.string()),
                      "choose another path, or remove it yourself");
  }
  return {};
}

// A -wal without its database would be taken for the new record's.
Status CheckNoOrphans(const fs::path& path) {
  for (const fs::path& companion : CompanionFiles(path)) {
    std::error_code error;
    if (!fs::exists(companion, error)) continue;
    return UsageError(fmt::format("{} is left over from another record", companion.string()),
                      "remove it, choose another path, or pass --force to replace it");
  }
  return {};
}

void RemoveIfThere(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

tl::unexpected<Error> CannotCreate(const fs::path& path, int error) {
  return Failed(fmt::format("cannot create {}: {}", path.string(), SystemMessage(error)),
                "check that its folder can be written");
}

Status Replace(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return CannotCreate(to, errno);
}

// For file systems that cannot do both in one step: whoever has made the empty file has the name.
Status ReserveAndReplace(const fs::path& from, const fs::path& to) {
  const int descriptor = open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) return AlreadyExists(to);
  if (descriptor < 0) return CannotCreate(to, errno);
  close(descriptor);
  Status replaced = Replace(from, to);
  if (!replaced) RemoveIfThere(to);
  return replaced;
}

Status RenameToNew(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return AlreadyExists(to);
  if (errno == EINVAL || errno == ENOSYS) return ReserveAndReplace(from, to);
  return CannotCreate(to, errno);
}

}  // namespace

Result<SqliteHeader> ReadSqliteHeader(const fs::path& path) {
  RETURN_IF_ERROR(CheckRegularFile(path));
  ASSIGN_OR_RETURN(const std::string bytes, ReadFirstBytes(path));
  if (bytes.empty()) {
    return BadInput(fmt::format("{} is empty", path.string()),
                    "it has recorded nothing: train again with --force, or restore it from a copy");
  }
  if (!IsSqlite(bytes)) {
    return BadInput(fmt::format("{} is not a record: no SQLite file", path.string()),
                    "check the path");
  }
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (bytes.size() < kHeaderBytes || (!error && size < BytesExpected(bytes))) {
    return BadInput(fmt::format("{} is damaged: cut off after {} bytes", path.string(), size),
                    "restore it from a copy");
  }
  return SqliteHeader{ApplicationId(bytes),
                      static_cast<std::int32_t>(BigEndian(bytes, kUserVersionOffset, 4))};
}

std::array<fs::path, 3> CompanionFiles(const fs::path& path) {
  const std::string name = path.string();
  return {name + "-wal", name + "-shm", name + "-journal"};
}

tl::unexpected<Error> AlreadyExists(const fs::path& path) {
  return UsageError(fmt::format("{} exists already", path.string()),
                    "choose another path, or pass --force to replace the record");
}

Result<fs::path> CheckDestination(const fs::path& path, bool overwrite) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  const fs::file_status status = error ? fs::file_status() : fs::status(absolute, error);
  if (fs::is_directory(status)) {
    return UsageError(fmt::format("{} is a folder", path.string()), "name a file for the record");
  }
  if (path.empty() || !absolute.has_filename()) {
    return UsageError(fmt::format("'{}' names no file", path.string()),
                      "name a file for the record");
  }
  if (!fs::is_directory(absolute.parent_path(), error)) {
    return UsageError(fmt::format("the folder {} does not exist", absolute.parent_path().string()),
                      "create it, or choose another path");
  }
  if (fs::exists(status)) {
    RETURN_IF_ERROR(CheckReplaceable(absolute, overwrite));
  } else if (!overwrite) {
    RETURN_IF_ERROR(CheckNoOrphans(absolute));
  }
  return absolute;
}

DraftFile::DraftFile(const fs::path& destination)
    : destination_(destination), path_(fmt::format("{}.new-{}", destination.string(), getpid())) {
  RemoveIfThere(path_);
  for (const fs::path& companion : CompanionFiles(path_)) RemoveIfThere(companion);
}

DraftFile::~DraftFile() {
  RemoveIfThere(path_);
  for (const fs::path& companion : CompanionFiles(path_)) RemoveIfThere(companion);
}

Status DraftFile::Publish(bool overwrite) {
  if (overwrite) {
    for (const fs::path& companion : CompanionFiles(destination_)) RemoveIfThere(companion);
  }
  RETURN_IF_ERROR(overwrite ? Replace(path_, destination_) : RenameToNew(path_, destination_));
  // So that the rename survives a power cut. Not every file system can, so an error is none of
  // ours.
  static_cast<void>(SyncFolder(destination_.parent_path()));
  return {};
}

}  // namespace verbatim
