// Whether a subnet's row is what a rank kept of its own part of it. Pure.
#pragma once

#include <optional>

#include "recorder/part_file.h"
#include "verify/difference.h"
#include "verify/layer_table.h"

namespace verbatim {

/// Where they differ first, with the row's value as `recorded` and the part's as `expected`; class,
/// cause and next command are the caller's to set. The row is sound (verify/row_check.h) and has
/// activations and activities; all that the part holds must be in it. `same_execution`: that the
/// row surely comes from the part's execution of the subnet, so that stages and times agree too,
/// and the row names no further task on the part's stages.
std::optional<Difference> ComparePart(const LayerTable& table, const SubnetRow& row,
                                      const Part& part, bool same_execution);

}  // namespace verbatim
