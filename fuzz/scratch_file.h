// A file that a target writes its input to, for readers that take a path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace verbatim::fuzz {

/// A folder of this process in $TMPDIR (scripts/fuzz names one in memory), removed at exit.
const std::filesystem::path& ScratchFolder();

/// Writes (or overwrites) a file of that folder and returns its path.
std::filesystem::path WriteScratch(const std::string& name, std::string_view content);

}  // namespace verbatim::fuzz
