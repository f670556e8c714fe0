// The critical path of the causal graph: how long the stream takes at least, on any number of
// stages, in any order that is equal to the sequential reference.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "schedule/causal_graph.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Every layer counts as a stage of its own, transfers as free. A micro-batch passes the layers
/// one after another; a layer takes a subnet's micro-batches one after another, the first once the
/// version that it reads is written, and its update comes after the last backward and after the
/// update before it. Memory: one number per layer, more for a layer with a delay.
class CausalBound {
 public:
  /// `last_microbatch` as SimulationOptions. References must outlive it.
  CausalBound(const SearchSpace& space, const CostTable& costs, std::int32_t microbatches,
              double last_microbatch);

  /// The next subnet: its layers by position, and their predecessors.
  void Add(std::int64_t seq, std::span<const std::int32_t> layers,
           std::span<const CausalPredecessors> predecessors);
  /// Of all that were added, in the unit of the costs.
  double length() const { return length_; }

 private:
  struct Version {
    std::int64_t seq;
    double written;
  };

  double WrittenAt(int layer, std::int64_t seq) const;
  void ForwardThrough(std::span<const std::int32_t> layers,
                      std::span<const CausalPredecessors> predecessors);
  void BackwardThrough(std::int64_t seq, std::span<const std::int32_t> layers,
                       std::span<const CausalPredecessors> predecessors);
  /// Passes a layer: when its micro-batches have arrived becomes when they are done.
  void Pass(double begin, double duration);
  void Update(std::int64_t seq, int layer, const CausalPredecessors& predecessors, double ready);

  const SearchSpace& space_;
  const CostTable& costs_;
  const double batch_;  ///< the batch in whole micro-batches: M - 1 + last
  const double last_;
  std::vector<std::deque<Version>> versions_;  ///< by layer: from the one that is read on
  std::vector<double> done_;                   ///< by micro-batch
  std::vector<double> begun_;                  ///< by position: its first forward
  double length_ = 0.0;
};

}  // namespace verbatim
