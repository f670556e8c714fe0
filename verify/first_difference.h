// Finds the first subnet in which two records differ through their trees, without reading the
// subnets before it: O(log n) hashes of each.
#pragma once

#include <string>

#include "base/status.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// A verdict of kind kDiff with Verdict::trees_compared set and no comparison: `recorded` values
/// are A's, `expected` ones B's. Compared are specs, environments, layouts, layers, data set, the
/// content trees of the subnets that both have, and of the first that differs its two rows, which
/// are checked against their leaves: a row that does not fit makes a damaged verdict. Whether the
/// trees are those of all other rows is for ExamineRecord to say.
///
/// kUsage where the records have different levels: then no leaf agrees. Errors are the readers';
/// also kBadInput where nodes of a tree contradict each other, or nothing could be compared.
Result<Verdict> FindFirstDifference(const RecordReader& a, const std::string& a_path,
                                    const RecordReader& b, const std::string& b_path);

}  // namespace verbatim
