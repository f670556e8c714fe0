// Faults in the files of a program, on purpose. A shared library that is loaded into any program by
// LD_PRELOAD and stands between it and the system calls that change files: so whatever the program
// writes passes through here, by SQLite, by a stream or by hand, and nothing in the program knows.
// docs/fault-injection.md, "Files", says what a plan means.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

enum class Operation { kOpen, kCreate, kWrite, kTruncate, kSync, kRename, kRemove, kMakeFolder };

const char* ToString(Operation operation) {
  constexpr const char* kNames[] = {"open", "create", "write",  "truncate",
                                    "sync", "rename", "remove", "make folder"};
  return kNames[static_cast<int>(operation)];
}

enum class Action { kNone, kCount, kList, kError, kShorten, kDelay, kKill, kTear };

struct Plan {
  Action action = Action::kNone;
  int error = 0;            // errno of kError
  long at = 0;              // the operation it is made at, counted from 1
  bool is_lasting = false;  // also at all that follow
  std::string name;
  std::string folder;  // with a slash at its end
};

bool IsHarmless(Action action) {
  return action == Action::kNone || action == Action::kCount || action == Action::kList;
}

[[noreturn]] void Refuse(const char* why) {
  dprintf(STDERR_FILENO, "file faults: %s\n", why);
  _exit(99);
}

void ParseAction(std::string_view name, Plan& plan) {
  struct Named {
    std::string_view name;
    Action action;
    int error;
  };
  constexpr Named kActions[] = {
      {"enospc", Action::kError, ENOSPC}, {"eio", Action::kError, EIO},
      {"eacces", Action::kError, EACCES}, {"erofs", Action::kError, EROFS},
      {"short", Action::kShorten, 0},     {"delay", Action::kDelay, 0},
      {"kill", Action::kKill, 0},         {"tear", Action::kTear, 0},
      {"count", Action::kCount, 0},       {"list", Action::kList, 0}};
  for (const Named& known : kActions) {
    if (known.name != name) continue;
    plan.action = known.action;
    plan.error = known.error;
    return;
  }
  Refuse("VERBATIM_FILE_FAULT is no ACTION@N, ACTION@N+, count or list");
}

Plan ReadPlan() {
  Plan plan;
  const char* text = std::getenv("VERBATIM_FILE_FAULT");
  const char* folder = std::getenv("VERBATIM_FILE_FAULT_FOLDER");
  if (text == nullptr) return plan;
  if (folder == nullptr || folder[0] != '/') Refuse("VERBATIM_FILE_FAULT_FOLDER is no folder");
  plan.folder = std::string(folder) + "/";
  plan.name = text;
  const auto separator = plan.name.find('@');
  ParseAction(std::string_view(plan.name).substr(0, separator), plan);
  if (separator == std::string::npos) {
    if (!IsHarmless(plan.action)) Refuse("VERBATIM_FILE_FAULT names no operation");
    return plan;
  }
  char* end = nullptr;
  plan.at = std::strtol(plan.name.c_str() + separator + 1, &end, 10);
  plan.is_lasting = *end == '+';
  if (plan.at < 1) Refuse("VERBATIM_FILE_FAULT counts operations from 1");
  return plan;
}

const Plan& ThePlan() {
  static const Plan plan = ReadPlan();
  return plan;
}

std::atomic<long> operations{0};

// The errors that a real system gives for an operation: a full disk still removes files, and
// permissions are looked at when a file is opened, not when it is written.
bool CanFailWith(Operation operation, int error) {
  switch (error) {
    case ENOSPC:
      return operation != Operation::kOpen && operation != Operation::kRemove &&
             operation != Operation::kTruncate;
    case EACCES:
      return operation != Operation::kWrite && operation != Operation::kTruncate &&
             operation != Operation::kSync;
    case EROFS:
      return operation != Operation::kSync;
    default:
      return true;
  }
}

std::string PathOf(int descriptor) {
  char link[64];
  char path[PATH_MAX];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

std::string Absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  if (folder != AT_FDCWD) return PathOf(folder) + "/" + path;
  char here[PATH_MAX];
  return getcwd(here, sizeof(here)) == nullptr ? path : std::string(here) + "/" + path;
}

void Tell(const Plan& plan, long number, Operation operation, const std::string& path) {
  dprintf(STDERR_FILENO, "file fault: %s at operation %ld, %s %s\n", plan.name.c_str(), number,
          ToString(operation), path.c_str() + plan.folder.size());
}

constexpr int kGoOn = 0;
constexpr int kHalf = -1;        // write half of it
constexpr int kHalfAndDie = -2;  // likewise, and end there

// What becomes of an operation: kGoOn, the errno it fails with, or for a write kHalf….
int Decide(Operation operation, const std::string& path) {
  const Plan& plan = ThePlan();
  if (plan.action == Action::kNone || !path.starts_with(plan.folder)) return kGoOn;
  const long number = ++operations;
  if (plan.action == Action::kList) Tell(plan, number, operation, path);
  const bool is_due = plan.is_lasting ? number >= plan.at : number == plan.at;
  if (IsHarmless(plan.action) || !is_due) return kGoOn;
  if (plan.action == Action::kError && !CanFailWith(operation, plan.error)) return kGoOn;
  if (number == plan.at || plan.action == Action::kError) Tell(plan, number, operation, path);
  switch (plan.action) {
    case Action::kError:
      return plan.error;
    case Action::kDelay:
      usleep(plan.is_lasting ? 2'000 : 200'000);
      return kGoOn;
    case Action::kShorten:
      return operation == Operation::kWrite ? kHalf : kGoOn;
    case Action::kTear:
      if (operation == Operation::kWrite) return kHalfAndDie;
      [[fallthrough]];
    default:
      kill(getpid(), SIGKILL);
      return kGoOn;
  }
}

// True where the operation fails; errno says why.
bool Fails(Operation operation, const std::string& path) {
  const int fate = Decide(operation, path);
  if (fate > 0) errno = fate;
  return fate > 0;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// `write_bytes(count)` writes so many of the bytes.
template <typename WriteBytes>
ssize_t Write(int descriptor, std::size_t count, const WriteBytes& write_bytes) {
  const int fate = Decide(Operation::kWrite, PathOf(descriptor));
  if (fate > 0) {
    errno = fate;
    return -1;
  }
  // Of a single byte there is no half: it is written, or not at all.
  if (fate == kGoOn || (fate == kHalf && count < 2)) return write_bytes(count);
  const ssize_t written = count < 2 ? 0 : write_bytes(count / 2);
  if (fate == kHalfAndDie) kill(getpid(), SIGKILL);
  return written;
}

bool MayWrite(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
}

int Open(int folder, const char* path, int flags, mode_t mode) {
  static const auto next = Next<int(int, const char*, int, ...)>("openat");
  if (MayWrite(flags)) {
    const std::string absolute = Absolute(folder, path);
    const bool is_new = (flags & O_CREAT) != 0 && access(absolute.c_str(), F_OK) != 0;
    if (Fails(is_new ? Operation::kCreate : Operation::kOpen, absolute)) return -1;
  }
  return next(folder, path, flags, mode);
}

mode_t ModeOf(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

__attribute__((destructor)) void TellCount() {
  if (ThePlan().action != Action::kCount) return;
  dprintf(STDERR_FILENO, "file faults: %ld operations\n", operations.load());
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(folder, path, flags, mode);
}

// Streams open their files by these, and the library inside by calls that cannot be stood between.
std::FILE* fopen(const char* path, const char* mode) {
  static const auto next = Next<std::FILE*(const char*, const char*)>("fopen");
  const bool may_write = std::strpbrk(mode, "wa+") != nullptr;
  const std::string absolute = Absolute(AT_FDCWD, path);
  const bool is_new = access(absolute.c_str(), F_OK) != 0;
  if (may_write && Fails(is_new ? Operation::kCreate : Operation::kOpen, absolute)) return nullptr;
  return next(path, mode);
}

std::FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}

ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  static const auto next = Next<ssize_t(int, const void*, std::size_t)>("write");
  return Write(descriptor, count, [&](std::size_t some) { return next(descriptor, bytes, some); });
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  static const auto next = Next<ssize_t(int, const iovec*, int)>("writev");
  return Write(descriptor, static_cast<std::size_t>(count),
               [&](std::size_t some) { return next(descriptor, parts, static_cast<int>(some)); });
}

ssize_t pwrite64(int descriptor, const void* bytes, std::size_t count, off64_t offset) {
  static const auto next = Next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  return Write(descriptor, count,
               [&](std::size_t some) { return next(descriptor, bytes, some, offset); });
}

ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  return pwrite64(descriptor, bytes, count, offset);
}

int ftruncate64(int descriptor, off64_t bytes) {
  static const auto next = Next<int(int, off64_t)>("ftruncate64");
  return Fails(Operation::kTruncate, PathOf(descriptor)) ? -1 : next(descriptor, bytes);
}

int ftruncate(int descriptor, off_t bytes) {
  return ftruncate64(descriptor, bytes);
}

int fsync(int descriptor) {
  static const auto next = Next<int(int)>("fsync");
  return Fails(Operation::kSync, PathOf(descriptor)) ? -1 : next(descriptor);
}

int fdatasync(int descriptor) {
  static const auto next = Next<int(int)>("fdatasync");
  return Fails(Operation::kSync, PathOf(descriptor)) ? -1 : next(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next<int(const char*, const char*)>("rename");
  return Fails(Operation::kRename, Absolute(AT_FDCWD, to)) ? -1 : next(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  static const auto next = Next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  if (Fails(Operation::kRename, Absolute(to_folder, to))) return -1;
  return next(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  static const auto next = Next<int(const char*)>("unlink");
  return Fails(Operation::kRemove, Absolute(AT_FDCWD, path)) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto next = Next<int(int, const char*, int)>("unlinkat");
  return Fails(Operation::kRemove, Absolute(folder, path)) ? -1 : next(folder, path, flags);
}

int remove(const char* path) noexcept {
  static const auto next = Next<int(const char*)>("remove");
  return Fails(Operation::kRemove, Absolute(AT_FDCWD, path)) ? -1 : next(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = Next<int(const char*, mode_t)>("mkdir");
  return Fails(Operation::kMakeFolder, Absolute(AT_FDCWD, path)) ? -1 : next(path, mode);
}

}  // extern "C"
