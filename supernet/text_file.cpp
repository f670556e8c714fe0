#include "supernet/text_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace verbatim {
namespace {

std::string WhyUnreadable(const std::filesystem::path& path, int error) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (status.type() == std::filesystem::file_type::not_found) return "it does not exist";
  if (std::filesystem::is_directory(status)) return "it is a folder";
  return error == 0 ? "the system does not say why" : std::system_category().message(error);
}

}  // namespace

Result<std::string> ReadTextFile(const std::filesystem::path& path, const std::string& what,
                                 const std::string& hint) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> part;
  // A folder opens like a file and fails at its first read; a device may have no end.
  while (file.good() && text.size() <= kTextFileBytesMax) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    const std::string why = WhyUnreadable(path, errno);
    return BadInput(fmt::format("{}: {} cannot be read: {}", path.string(), what, why), hint);
  }
  if (text.size() > kTextFileBytesMax) {
    return BadInput(
        fmt::format("{}: {} is longer than {} MiB", path.string(), what, kTextFileBytesMax >> 20),
        hint);
  }
  return text;
}

}  // namespace verbatim
