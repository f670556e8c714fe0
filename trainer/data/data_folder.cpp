#include "trainer/data/data_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>
#include <utility>

namespace verbatim {

DataFolder::DataFolder(std::filesystem::path path, std::string hint)
    : path_(std::move(path)), hint_(std::move(hint)) {}

Result<DataFolder> DataFolder::Open(const std::filesystem::path& path, std::string hint) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (std::filesystem::is_directory(status)) return DataFolder(path, std::move(hint));
  if (status.type() == std::filesystem::file_type::not_found) {
    return BadInput(fmt::format("the data folder {} does not exist", path.string()), hint);
  }
  const std::string reason = code ? code.message() : "it is not a folder";
  return BadInput(fmt::format("cannot use {} as the data folder: {}", path.string(), reason), hint);
}

std::optional<std::filesystem::path> DataFolder::Find(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    std::error_code code;  // what cannot be looked at is reported as not found
    if (std::filesystem::is_regular_file(path_ / name, code)) return path_ / name;
  }
  return std::nullopt;
}

Result<std::filesystem::path> DataFolder::Require(const std::vector<std::string>& names) const {
  if (auto found = Find(names)) return *std::move(found);
  return BadInput(
      fmt::format("no file {} in the data folder {}", fmt::join(names, " or "), path_.string()),
      hint_);
}

}  // namespace verbatim
