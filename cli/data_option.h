// `--data DIR`, as every command that may need the data set has it.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "base/status.h"

namespace verbatim {

/// `data` must outlive the parsing.
void AddDataOption(CLI::App& command, std::optional<std::filesystem::path>& data);

/// kBadInput where --data is no folder.
Status CheckDataFolder(const std::optional<std::filesystem::path>& data);

}  // namespace verbatim
