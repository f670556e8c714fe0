// Whether a record holds what its ranks kept for themselves (docs/format.md, "Part files"). Whoever
// can rewrite the record, on rank 0's disk, cannot rewrite these.
#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"
#include "recorder/part_file.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

inline constexpr const char* kCheckParts = "parts";

/// Errors are PartReader's, for the first file that is none.
Result<std::vector<PartReader>> OpenParts(const std::vector<std::filesystem::path>& files);

/// Adds the check "parts" to a verdict of ExamineRecord, before its last one. Every part that a
/// file holds of a subnet in the record must be in the subnet's row, whichever execution it is of;
/// stages and times as well, where the subnet was executed once. A difference becomes the verdict's
/// first one, of class kForged, unless it has one of that class. Parts of subnets that the record
/// lacks are counted. The check of a damaged record in which it finds nothing is "not run".
///
/// Errors: a file is damaged, or of a run with another spec (kBadInput); or the reader's.
Status AddPartCheck(const RecordReader& reader, std::vector<PartReader>& parts, Verdict& verdict);

}  // namespace verbatim
