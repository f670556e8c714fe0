// Damages a closed record on purpose, as an accident or a careless hand would
// (docs/fault-injection.md). Nobody may have the record open.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/status.h"

namespace verbatim {

/// Flips one bit of the weights digest of one access, and leaves the subnet's leaves as they are.
/// kFailed where the record has no such access, or the access no digest.
Status RewriteAccessRow(const std::filesystem::path& path, std::int64_t seq, std::int32_t layer);

/// Deletes a subnet's row. kFailed where the record has no such subnet.
Status DeleteSubnetRow(const std::filesystem::path& path, std::int64_t seq);

/// Cuts the file to half its size.
Status TruncateFile(const std::filesystem::path& path);

}  // namespace verbatim
