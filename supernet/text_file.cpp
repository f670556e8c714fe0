#include "supernet/text_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace verbatim {

Result<std::string> ReadTextFile(const std::filesystem::path& path, const std::string& what,
                                 const std::string& hint) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> part;
  // A folder opens like a file and fails at its first read; a device may have no end.
  while (file.good() && text.size() <= kTextFileBytesMax) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    return BadInput(fmt::format("{}: {} cannot be read", path.string(), what), hint);
  }
  if (text.size() > kTextFileBytesMax) {
    return BadInput(
        fmt::format("{}: {} is longer than {} MiB", path.string(), what, kTextFileBytesMax >> 20),
        hint);
  }
  return text;
}

}  // namespace verbatim
