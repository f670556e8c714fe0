// Damages a closed record on purpose, as an accident or a careless hand would
// (docs/fault-injection.md). Nobody may have the record open.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/status.h"

namespace verbatim {

/// Flips one bit of the weights digest in one access row. kFailed where the record has no such row,
/// or the row no digest.
Status RewriteAccessRow(const std::filesystem::path& path, std::int64_t seq, std::int32_t layer);

/// Deletes a subnet's row and everything that refers to it, so that no foreign key tells. kFailed
/// where the record has no such subnet.
Status DeleteSubnetRows(const std::filesystem::path& path, std::int64_t seq);

/// Cuts the file to half its size.
Status TruncateFile(const std::filesystem::path& path);

}  // namespace verbatim
