// Compares two executions of one stream subnet by subnet, all of it, and tells where differences
// begin from where they are passed on.
//
// A subnet that differs is *tainted* where the content of a version that it read differs, else it
// is an *origin*. Where a layer has a delay, the version that its update is applied to is another
// than the one read: a subnet that differs in nothing but updates is tainted where all of them were
// applied to versions that differ. Choices, samples, batch bytes and the versions read or updated
// do not depend on weights: where one of them differs, the subnet is an origin whatever it read.
// Whether a layer differs is decided by the digests that its latest access left on either side, so
// a layer heals when they agree again. Without digests on both sides (level `losses`) taint follows
// the causal graph: from a subnet that differs to all that use its layers afterwards, and on from
// those.
//
// The criterion is causal synchronous parallel training's (NASPipe, ASPLOS'22, section 3): a
// subnet's result is a function of its choices, its batch and what its causal predecessors left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/record.h"
#include "verify/comparison.h"
#include "verify/layer_table.h"
#include "verify/layer_versions.h"
#include "verify/step_difference.h"

namespace verbatim {

/// What is compared, other than subnets of one stream.
struct ComparisonMode {
  /// kSteps: rows of a StepProjection. A step reads what the step before left, whose number may be
  /// lower by more than one.
  RunKind kind = RunKind::kSupernet;
  bool replicas = false;  ///< StepComparison's
};

/// Memory is a few numbers per layer; time O(1) per access. Not thread-safe.
class RunComparison {
 public:
  /// Keeps a reference: `table`, the layers of both sides, outlives it. `subnets_expected` scales
  /// the map and may be wrong.
  RunComparison(const LayerTable& table, std::int64_t subnets_expected, SideNames names = {},
                ComparisonMode mode = {});

  /// Layers of side b, equal to the table's but for their initial weights; before the first
  /// subnet. Returns the first layer that differs, which is then the first origin.
  std::optional<Difference> VisitLayers(const std::vector<LayerRow>& b);
  /// Subnets in ascending seq, which need not be consecutive, the same on both sides; rows are
  /// sound (verify/row_check.h). Compared is what both hold. Returns the first difference within
  /// the subnet, with a cause and without a next command.
  std::optional<Difference> Visit(const SubnetRow& a, const SubnetRow& b);

  /// So far; `layers` is filled by Finish.
  const Comparison& result() const { return result_; }
  /// Call once, after the last subnet.
  Comparison Finish();

 private:
  /// How often a layer's accesses differed.
  struct LayerCount {
    std::int64_t first_seq = -1;
    std::int64_t accesses = 0;
  };
  /// A subnet that differs: how, and where first.
  struct Finding {
    Equality equality = Equality::kEqual;
    std::optional<Difference> difference;
  };

  bool is_steps() const { return mode_.kind == RunKind::kSteps; }
  StepComparison Steps(const SubnetRow& a, const SubnetRow& b) const {
    return {table_, names_, a, b, mode_.replicas};
  }
  std::optional<Difference> FirstInput(const SubnetRow& a, const SubnetRow& b) const;
  std::optional<Difference> First(const SubnetRow& a, const SubnetRow& b) const;
  void PairAccesses(const SubnetRow& a, const SubnetRow& b);
  const LayerUse* FirstUse(bool (LayerVersions::*differs)(const LayerUse&) const) const;
  bool UpdatesAreTainted() const;
  SubnetRow WithoutTaintedUpdates(SubnetRow a) const;
  Finding Classify(const SubnetRow& a, const SubnetRow& b, const LayerUse* tainted_by) const;
  void CountSubnet(std::int64_t seq, const Finding& finding);
  void CountAccess(std::int64_t seq, const LayerUse& use, const Finding& finding);
  Equality AccessEquality(const LayerUse& use, const Finding& finding) const;
  void CountLayer(std::int64_t seq, const AccessRow* access);
  void Mark(std::int32_t position, Equality equality);

  const LayerTable& table_;
  SideNames names_;
  ComparisonMode mode_;
  LayerVersions versions_;
  std::vector<LayerCount> counts_;  ///< by layer
  std::vector<LayerUse> uses_;      ///< of the subnet at hand, by ascending position
  std::int64_t last_seq_ = -1;
  std::int64_t before_ = -1;  ///< the subnet visited before the one at hand
  Comparison result_;
};

}  // namespace verbatim
