// `verbatim train` as the engine does it: prepares, trains, records, closes, and says what came of
// it. Linked into verbatim-engine only.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "cli/engine.h"
#include "cli/rank_session.h"

namespace verbatim {

/// As Engine::Train. Joins the other ranks where there are any; the caller lets the session leave
/// them. What LibTorch throws passes through.
Status TrainAndRecord(const TrainRequest& request, RankSession& session);

/// Where the relative paths of a spec start: the folder of its file.
std::filesystem::path FolderOf(const std::filesystem::path& spec_file);

}  // namespace verbatim
