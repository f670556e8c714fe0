// The stream: the subnets of a run in sequence order, each with its samples. Fixed by the spec and
// the seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "supernet/sampler.h"

namespace verbatim {

/// `count` different members of `pool`, in drawing order (docs/spec.md, "Batches").
/// count <= pool.size().
std::vector<std::uint32_t> DrawSamples(std::span<const std::uint32_t> pool, std::int64_t count,
                                       const RandomKey& key);

/// Rows of micro-batch m of M: [first, last). Every one holds ceil(batch/M) rows, the last may
/// hold fewer.
struct RowRange {
  std::int64_t first;
  std::int64_t last;
  std::int64_t size() const { return last - first; }
};
RowRange MicrobatchRows(std::int64_t batch, std::int64_t microbatches, std::int64_t m);

}  // namespace verbatim
