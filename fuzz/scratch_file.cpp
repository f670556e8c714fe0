#include "fuzz/scratch_file.h"

#include <cstdio>

#include "base/check.h"
#include "tests/temporary_folder.h"

namespace verbatim::fuzz {

const std::filesystem::path& ScratchFolder() {
  static const test::TemporaryFolder folder;
  return folder.path();
}

std::filesystem::path WriteScratch(const std::string& name, std::string_view content) {
  const std::filesystem::path path = ScratchFolder() / name;
  std::filesystem::remove(path);  // some file systems go to the disk where a file is cut to nothing
  std::FILE* file = std::fopen(path.c_str(), "wb");
  VERBATIM_CHECK(file != nullptr, "{} cannot be written", path.string());
  const bool is_written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  VERBATIM_CHECK(std::fclose(file) == 0 && is_written, "{} cannot be written", path.string());
  return path;
}

}  // namespace verbatim::fuzz
