// The stream: the subnets of a run in sequence order. Fixed by the spec and the seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// One candidate per choice block, in block order.
using Choices = std::vector<std::uint16_t>;

/// Draws subnets. A pure function of seq: may be asked in any order, from any thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Choices Draw(std::int64_t seq) const = 0;
};

/// The sampler that the spec names. `spec_folder` is where relative file names start. BadInput
/// where a `list` file is malformed, chooses a candidate that does not exist or is too short.
Result<std::unique_ptr<Sampler>> MakeSampler(const Spec& spec, const SearchSpace& space,
                                             const std::filesystem::path& spec_folder);

/// Uniform choices under any key: the draw of sampler `uniform` and of evaluated subnets.
Choices DrawUniformChoices(const SearchSpace& space, const RandomKey& key);

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
