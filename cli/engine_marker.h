// How an executable file is known to be verbatim-engine, and of which version, without starting it.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace verbatim {

/// What stands right before the version in verbatim-engine's file.
inline constexpr char kEngineMarker[] = "verbatim-engine:";

/// OK where the file holds kEngineMarker and this program's version. Else kFailed, saying that it
/// is another program or of which version it is. Reads the file up to the marker.
Status CheckEngineFile(const std::filesystem::path& path);

}  // namespace verbatim
