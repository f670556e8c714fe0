// What the ranks of a run must send each other at the least, found from the stream alone: the
// measure for what a run did send.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <vector>

#include "schedule/causal_graph.h"
#include "schedule/partition.h"
#include "schedule/placement.h"
#include "schedule/simulate/simulation.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Given the partition and the placement: every activation whose next position is another rank's;
/// its gradient, where a layer before it is trained; a layer's state for the subnet that updates
/// it elsewhere than it was written; and weights for one that reads a version which its rank has
/// not had in either way. A tied head's matrix is not counted.
///
/// Grows with the stream; memory is a number per layer, use within its delay, and rank. Not
/// thread-safe. References must outlive it.
class RankTraffic {
 public:
  /// `last_microbatch`: its rows per row of the others.
  RankTraffic(const SearchSpace& space, const CostTable& costs, const Partition& partition,
              const Placement& placement, std::int32_t microbatches, double last_microbatch);

  /// Subnets in ascending seq.
  void Add(std::int64_t seq, std::span<const std::uint16_t> choices);

  /// From rank to rank, of all subnets added.
  const MovedBytes& bytes() const { return bytes_; }
  /// Transfers of a layer's state or weights.
  std::int64_t versions() const { return versions_; }

 private:
  struct Version {
    std::int64_t seq;
    int writer;           ///< rank
    std::set<int> ranks;  ///< that have its weights
  };

  void AddBoundaries(std::span<const std::uint16_t> choices, const StageRanges& ranges);
  void Fetch(const Layer& layer, std::int64_t version, int rank, bool is_base);

  const SearchSpace& space_;
  const CostTable& costs_;
  const Partition& partition_;
  const Placement placement_;
  const std::int32_t microbatches_;
  const double last_microbatch_;
  CausalGraph graph_;
  std::vector<std::deque<Version>> layers_;  ///< by layer: ascending, what may still be asked for
  MovedBytes bytes_;
  std::int64_t versions_ = 0;
};

}  // namespace verbatim
