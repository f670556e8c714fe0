// The first difference, in causal order, between two rows of one subnet.
#pragma once

#include <optional>

#include "store/record.h"
#include "verify/layer_table.h"
#include "verify/verdict.h"

namespace verbatim {

/// `recorded` is sound (verify/row_check.h); `here` was computed at the same level. The difference
/// has class, place, values and cause; no next command. Order and method: verify/comparator.h.
std::optional<Difference> CompareSubnetRows(const LayerTable& table, const SubnetRow& recorded,
                                            const SubnetRow& here);

}  // namespace verbatim
