// What the command line needs of step runs, which another trainer recorded.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string_view>

#include "base/status.h"
#include "store/reader.h"
#include "verify/layer_matching.h"

namespace verbatim {

/// kUsage where the record is of a step run, of which nothing can be executed, nor exported.
/// `command` begins the message: "verbatim replay", "--reexecute".
Status RefuseStepRun(const RecordReader& reader, std::string_view command);

/// `--rename FILE`, of two records that are compared.
CLI::Option* AddRenameOption(CLI::App& command, std::filesystem::path& file);

/// A JSON object of strings, name in A to name in B. No path: none. kBadInput names line and
/// column; kFailed where it cannot be read.
Result<LayerNames> ReadRenames(const std::filesystem::path& file);

}  // namespace verbatim
