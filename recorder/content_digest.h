// What two records of equal runs have in common, as bytes, leaves and one digest; and what they
// need not have in common, likewise (docs/format.md, "Trees" and "Content digest"). All functions
// are pure.
#pragma once

#include <string>

#include "base/hash256.h"
#include "base/status.h"
#include "store/reader.h"
#include "store/record.h"

namespace verbatim {

/// Canonical bytes of one subnet's content: no stage, no clock. Rows must be in a record's order.
std::string EncodeSubnetContent(const SubnetRow& subnet);
/// Canonical bytes of the rest: the stages of its accesses, and its tasks.
std::string EncodeSubnetLayout(const SubnetRow& subnet);

/// LeafHash of those bytes: what SubnetRow::content_leaf and layout_leaf hold in a sound record.
Hash256 ContentLeaf(const SubnetRow& subnet);
Hash256 LayoutLeaf(const SubnetRow& subnet);

/// Hash over a record's content: equal runs have equal ones, whatever their layout, timing and
/// clocks. Computed from the rows, whatever leaves stand beside them; memory does not grow with the
/// run.
Result<Hash256> ContentDigest(const RecordReader& reader);

}  // namespace verbatim
