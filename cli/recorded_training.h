// `verbatim train` as the engine does it: prepares, trains, records, closes, and says what came of
// it. Linked into verbatim-engine only.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "cli/engine.h"

namespace verbatim {

/// As Engine::Train. What LibTorch throws passes through.
Status TrainAndRecord(const TrainRequest& request);

/// Where the relative paths of a spec start: the folder of its file.
std::filesystem::path FolderOf(const std::filesystem::path& spec_file);

}  // namespace verbatim
