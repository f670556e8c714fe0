#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "cli/output.h"
#include "store/checkpoint_files.h"
#include "store/record_file.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as in Linux
constexpr int kMaxDraftNames = 100;

// Source: "Database File Format" and "WAL-mode File Format" of SQLite's documentation.
constexpr std::string_view kDatabaseStarts[] = {
    {"SQLite format 3\0", 16},
    {"\x37\x7f\x06\x82", 4},                   // -wal
    {"\x37\x7f\x06\x83", 4},                   // -wal
    {"\x18\xe2\x2d\x00", 4},                   // -shm
    {"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8}};  // -journal

/// What lies there is open already, and may be anything: /dev/stdout leads there.
bool IsOpenFile(const fs::path& target) {
  return target.string().starts_with("/proc/");
}

/// The file that writing to `path` reaches, which need not exist: absolute, links followed.
fs::path TargetOf(fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMaxLinks; ++links) {
    path = fs::absolute(path, error);
    const fs::path folder = fs::weakly_canonical(path.parent_path(), error);
    if (error) break;
    path = folder / path.filename();
    if (IsOpenFile(path) || !fs::is_symlink(path, error)) break;
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

bool AreOneFile(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return TargetOf(a) == TargetOf(b) || fs::equivalent(a, b, error);
}

bool StartsLikeDatabase(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;  // reading a pipe would wait
  std::array<char, 16> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view start(bytes.data(), static_cast<std::size_t>(file.gcount()));
  return std::any_of(std::begin(kDatabaseStarts), std::end(kDatabaseStarts),
                     [&](std::string_view known) { return start.starts_with(known); });
}

// Also one that does not exist: SQLite would read it as its own.
bool IsBesideDatabase(const fs::path& target) {
  const std::string name = target.string();
  for (const std::string_view suffix : {"-wal", "-shm", "-journal"}) {
    if (!name.ends_with(suffix)) continue;
    if (StartsLikeDatabase(name.substr(0, name.size() - suffix.size()))) return true;
  }
  return false;
}

Status RefuseDatabase(const OutputOption& output, const fs::path& target) {
  if (!StartsLikeDatabase(target) && !IsBesideDatabase(target)) return {};
  return UsageError(fmt::format("{} {} is a record or another database, or a part of one",
                                output.option, output.path.string()),
                    "Name another file, or remove that one yourself.");
}

tl::unexpected<Error> CannotWrite(const OutputOption& output, int error) {
  return Failed(fmt::format("{} cannot be written: {}", output.path.string(), std::strerror(error)),
                fmt::format("Name another file with {}.", output.option));
}

/// Zero, or the errno that opening the target would end with.
int WhyNotWritable(const fs::path& target) {
  std::error_code error;
  if (!target.has_filename() || fs::is_directory(target, error)) return EISDIR;
  if (!IsOpenFile(target) && fs::is_symlink(target, error)) return ELOOP;
  const bool exists = fs::exists(target, error);
  const fs::path folder = target.parent_path() / ".";
  const int denied = exists ? access(target.c_str(), W_OK) : access(folder.c_str(), W_OK | X_OK);
  return denied == 0 ? 0 : errno;
}

Status CheckTarget(const OutputOption& output) {
  const fs::path target = TargetOf(output.path);
  RETURN_IF_ERROR(RefuseDatabase(output, target));
  const int error = WhyNotWritable(target);
  return error == 0 ? Status() : CannotWrite(output, error);
}

/// A file being written. Functions return zero or an errno.
class Draft {
 public:
  explicit Draft(fs::path target) : target_(std::move(target)) {}
  ~Draft() {
    if (file_ != nullptr) std::fclose(file_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  int Open() {
    const int descriptor = IsWrittenItself() ? OpenTarget() : OpenBeside();
    if (descriptor < 0) return errno;
    file_ = fdopen(descriptor, "wb");
    return file_ == nullptr ? errno : 0;
  }

  int Write(std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? 0 : errno;
  }

  int Publish() {
    if (std::fflush(file_) != 0) return errno;
    // Some file systems find out only now that they are full.
    if (!path_.empty() && fsync(fileno(file_)) != 0) return errno;
    if (std::fclose(std::exchange(file_, nullptr)) != 0) return errno;
    if (path_.empty()) return 0;
    if (std::rename(path_.c_str(), target_.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  bool IsWrittenItself() const {
    std::error_code error;
    if (!fs::exists(target_, error)) return false;
    return IsOpenFile(target_) || !fs::is_regular_file(target_, error) ||
           access(target_.parent_path().c_str(), W_OK | X_OK) != 0;
  }

  // Standard output may be a log that others append to.
  int OpenTarget() const {
    return open(target_.c_str(), O_WRONLY | O_CLOEXEC | (IsOpenFile(target_) ? O_APPEND : O_TRUNC));
  }

  int OpenBeside() {
    for (int i = 0; i < kMaxDraftNames; ++i) {
      const fs::path path = target_.parent_path() / fmt::format(".verbatim-{}-{}", getpid(), i);
      const int descriptor = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      if (descriptor < 0 && errno == EEXIST) continue;
      if (descriptor >= 0) {
        path_ = path;
        KeepPermissions(descriptor);
      }
      return descriptor;
    }
    return -1;
  }

  void KeepPermissions(int descriptor) const {
    struct stat replaced;
    if (stat(target_.c_str(), &replaced) != 0) return;
    // Not every file system has them.
    [[maybe_unused]] const int ignored = fchmod(descriptor, replaced.st_mode & 0777);
  }

  fs::path target_;
  fs::path path_;  ///< beside the target; empty where that is written itself
  std::FILE* file_ = nullptr;
};

}  // namespace

Status CheckOutputs(const std::vector<OutputOption>& outputs,
                    const std::vector<fs::path>& records) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    for (const fs::path& record : records) {
      if (!IsPartOfRecord(output->path, record)) continue;
      return UsageError(fmt::format("{} {} is the record itself, or a part of it", output->option,
                                    output->path.string()),
                        "Name another file.");
    }
    for (auto other = outputs.begin(); other != output; ++other) {
      if (other->path.empty() || !AreOneFile(other->path, output->path)) continue;
      return UsageError(fmt::format("{} {} and {} {} are one file", other->option,
                                    other->path.string(), output->option, output->path.string()),
                        "Name two files.");
    }
    RETURN_IF_ERROR(CheckTarget(*output));
  }
  return {};
}

Status RefuseInputs(const std::vector<OutputOption>& outputs, const std::vector<fs::path>& inputs) {
  for (const OutputOption& output : outputs) {
    for (const fs::path& input : inputs) {
      if (output.path.empty() || input.empty() || !AreOneFile(output.path, input)) continue;
      return UsageError(
          fmt::format("{} {} is a file that is read", output.option, output.path.string()),
          "Name another file.");
    }
  }
  return {};
}

Status WriteOutput(const OutputOption& output,
                   const std::function<Status(const TextSink&)>& produce) {
  RETURN_IF_ERROR(CheckTarget(output));
  const auto status_of = [&](int error) {
    return error == 0 ? Status() : CannotWrite(output, error);
  };
  Draft draft(TargetOf(output.path));
  RETURN_IF_ERROR(status_of(draft.Open()));
  RETURN_IF_ERROR(produce([&](std::string_view text) { return status_of(draft.Write(text)); }));
  return status_of(draft.Publish());
}

Status WriteResult(std::string_view text, const OutputOption& output) {
  if (output.path.empty()) return WriteToStdout(text);
  return WriteOutput(output, [&](const TextSink& write) { return write(text); });
}

bool IsPartOfRecord(const fs::path& path, const fs::path& record) {
  if (AreOneFile(path, record)) return true;
  if (AreOneFile(TargetOf(path).parent_path(), CheckpointFolder(record))) return true;
  const auto companions = CompanionFiles(TargetOf(record));
  return std::any_of(companions.begin(), companions.end(),
                     [&](const fs::path& part) { return AreOneFile(path, part); });
}

}  // namespace verbatim
