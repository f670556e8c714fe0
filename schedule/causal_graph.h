// The causal graph of a stream: for every access the access whose version it must read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "supernet/search_space.h"

namespace verbatim {

/// Grows with the stream; memory is one number per layer, whatever the stream's length. Not
/// thread-safe. `space` must outlive it.
class CausalGraph {
 public:
  static constexpr std::int64_t kNone = -1;

  explicit CausalGraph(const SearchSpace& space);

  /// Adds a subnet after all that were added before (ascending seq) and returns, per position, the
  /// seq of its causal predecessor there: the greatest seq added before that uses the same layer,
  /// or kNone. Also kNone where the layer is not versioned. The span is valid until the next call.
  std::span<const std::int64_t> Add(std::int64_t seq, std::span<const std::uint16_t> choices);

 private:
  const SearchSpace& space_;
  std::vector<std::int64_t> last_user_;     ///< by layer
  std::vector<std::int64_t> predecessors_;  ///< by position, of the newest subnet
};

}  // namespace verbatim
