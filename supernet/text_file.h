// A whole text file in memory.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace verbatim {

/// BadInput "PATH: `what` cannot be read", with `hint`, where it is absent, a folder or unreadable.
Result<std::string> ReadTextFile(const std::filesystem::path& path, const std::string& what,
                                 const std::string& hint);

}  // namespace verbatim
