// What two records of equal runs have in common, as bytes and as one digest (docs/format.md,
// "Content digest"). All functions are pure.
#pragma once

#include <string>

#include "base/status.h"
#include "store/reader.h"
#include "store/record.h"

namespace verbatim {

/// Canonical bytes of one subnet's content: no stage, no clock. Rows must be in a record's order.
std::string EncodeSubnetContent(const SubnetRow& subnet);

/// DigestBytes of those bytes: what SubnetRow::content_digest holds in a sound record.
Digest SubnetContentDigest(const SubnetRow& subnet);

/// Digest over a record's content: equal runs have equal content digests, whatever their layout,
/// timing and clocks. Memory does not grow with the run.
Result<Digest> ContentDigest(const RecordReader& reader);

}  // namespace verbatim
