#include "cli/data_option.h"

#include <fmt/format.h>

#include <system_error>

#include "cli/commands.h"

namespace verbatim {

void AddDataOption(CLI::App& command, std::optional<std::filesystem::path>& data) {
  command
      .add_option("--data", data,
                  "Folder of the data set, if it is not where the spec says. Example: --data "
                  "/data/digits")
      ->type_name("DIR")
      ->check(NamedPath());
}

Status CheckDataFolder(const std::optional<std::filesystem::path>& data) {
  std::error_code error;
  if (!data || std::filesystem::is_directory(*data, error)) return {};
  return BadInput(fmt::format("--data {} is no folder", data->string()),
                  "Name the folder that holds the data set's files.");
}

}  // namespace verbatim
