// A whole text file in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace verbatim {

/// The longest file that is read: a list of some millions of subnets.
inline constexpr std::size_t kTextFileBytesMax = std::size_t{256} << 20;

/// BadInput "PATH: `what` cannot be read: WHY", with `hint`, where it is absent, a folder or
/// unreadable; BadInput also where it is longer than kTextFileBytesMax.
Result<std::string> ReadTextFile(const std::filesystem::path& path, const std::string& what,
                                 const std::string& hint);

}  // namespace verbatim
