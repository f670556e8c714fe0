#include "cli/engine_marker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "cli/version.h"

namespace verbatim {
namespace {

constexpr const char* kHint = "Let VERBATIM_ENGINE name the engine of this program, or unset it.";

/// The version after the first marker that one follows; empty where there is none. kEngineMarker
/// without a version is in every program that looks for it, this one too.
std::string VersionIn(std::string_view file) {
  constexpr std::string_view kVersion = "0123456789.";
  const std::string_view marker = kEngineMarker;
  while (!file.empty()) {
    const void* found = memmem(file.data(), file.size(), marker.data(), marker.size());
    if (found == nullptr) return "";
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - file.data());
    file.remove_prefix(at + marker.size());
    const std::size_t length = std::min(file.find_first_not_of(kVersion), file.size());
    if (length > 0) return std::string(file.substr(0, length));
  }
  return "";
}

/// VersionIn of the file, mapped rather than read: of an engine only the first part is touched.
Result<std::string> VersionInFile(const std::filesystem::path& path) {
  const auto failed = [&] {
    return Failed(fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno)), kHint);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  struct stat status {};
  const bool is_known = fstat(file, &status) == 0;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes =
      is_known && size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  close(file);
  errno = error;
  if (is_known && size == 0) return "";
  if (bytes == MAP_FAILED) return failed();
  std::string version = VersionIn({static_cast<const char*>(bytes), size});
  munmap(bytes, size);
  return version;
}

}  // namespace

Status CheckEngineFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string version, VersionInFile(path));
  if (version == ToolVersion()) return {};
  if (version.empty()) {
    return Failed(fmt::format("{} is not verbatim-engine", path.string()), kHint);
  }
  return Failed(fmt::format("{} is verbatim-engine {}, but this is verbatim {}", path.string(),
                            version, ToolVersion()),
                "Install the two programs together.");
}

}  // namespace verbatim
