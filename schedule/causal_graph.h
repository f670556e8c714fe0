// The causal graph of a stream: for every access the accesses whose versions it must read and
// update.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "supernet/search_space.h"

namespace verbatim {

/// Of subnet j's use of a layer with delay d; equal where d = 0.
struct CausalPredecessors {
  static constexpr std::int64_t kNone = -1;

  std::int64_t read = kNone;  ///< greatest i < j - d that uses the layer: its version is read
  std::int64_t base = kNone;  ///< greatest i < j that uses it: its version is updated
  bool operator==(const CausalPredecessors&) const = default;
};

/// Grows with the stream; memory is one number per layer and, for a layer with a delay, one per
/// use within the delay, whatever the stream's length. Not thread-safe. `space` must outlive it.
class CausalGraph {
 public:
  explicit CausalGraph(const SearchSpace& space);

  /// Adds a subnet after all that were added before (ascending seq) and returns its predecessors
  /// among those, by position: none where the layer is not versioned. The span is valid until the
  /// next call.
  std::span<const CausalPredecessors> Add(std::int64_t seq, std::span<const std::uint16_t> choices);

 private:
  std::int64_t ReadPredecessor(const Layer& layer, std::int64_t seq);

  const SearchSpace& space_;
  std::vector<std::int64_t> last_user_;            ///< by layer
  std::map<int, std::deque<std::int64_t>> users_;  ///< by layer with a delay: from the read one on
  std::vector<CausalPredecessors> predecessors_;   ///< by position, of the newest subnet
};

}  // namespace verbatim
