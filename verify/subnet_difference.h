// The first difference, in causal order, between two rows of one subnet.
#pragma once

#include <optional>

#include "store/record.h"
#include "verify/layer_table.h"
#include "verify/verdict.h"

namespace verbatim {

/// Both rows are sound (verify/row_check.h); compared is what both hold, whatever their levels. The
/// difference has class, place, values and cause; no next command. Order and method:
/// verify/comparator.h.
std::optional<Difference> CompareSubnetRows(const LayerTable& table, const SubnetRow& recorded,
                                            const SubnetRow& here);

/// Likewise, only of what depends on no weights: choices, samples, batch bytes, layers used,
/// versions read and versions updated.
std::optional<Difference> CompareSubnetInputs(const LayerTable& table, const SubnetRow& recorded,
                                              const SubnetRow& here);

}  // namespace verbatim
