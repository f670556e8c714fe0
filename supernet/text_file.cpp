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
  // A folder opens like a file and fails at its first read.
  while (file.good()) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    return BadInput(fmt::format("{}: {} cannot be read", path.string(), what), hint);
  }
  return text;
}

}  // namespace verbatim
