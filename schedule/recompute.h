// Which activations the backward pass computes again instead of finding them kept from the forward
// pass (`--recompute`): memory for time (T. Chen et al., "Training Deep Nets with Sublinear Memory
// Cost", 2016).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Positions [begin, end) of one stage: a part of its range that is kept whole or computed again.
struct RangeSegment {
  int begin = 0;
  int end = 0;
  /// Between forward and backward nothing is kept of it but its input. Its backward begins with its
  /// forward.
  bool recomputes = false;
  bool operator==(const RangeSegment&) const = default;
};

/// Ranges of blocks, each of which keeps its input alone. Like a partition it bears on no bit.
class RecomputePlan {
 public:
  /// Nothing is computed again.
  RecomputePlan() = default;

  /// The plan that `name` names:
  /// "none": nothing;
  /// "all": every block is a range of its own;
  /// "1-12,13-24", "7": ranges of blocks, numbered as in their layers' names, ascending, without a
  /// block in common. Stem and head are always kept.
  /// kUsage for another name, and for blocks that the space does not have.
  static Result<RecomputePlan> Make(const std::string& name, const SearchSpace& space);

  bool empty() const { return ranges_.empty(); }
  /// A stage's positions [begin, end) in order. Ranges are cut at the stage's ends; what is kept
  /// between two of them is one segment.
  std::vector<RangeSegment> Segments(int begin, int end) const;
  /// What layers cost under this plan: a backward that begins with the forward includes it.
  CostTable Costs(CostTable costs, const SearchSpace& space) const;

 private:
  explicit RecomputePlan(std::vector<RangeSegment> ranges) : ranges_(std::move(ranges)) {}

  std::vector<RangeSegment> ranges_;  ///< ascending
};

}  // namespace verbatim
