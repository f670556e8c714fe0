// The layers that two step runs have in common, found by their names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "verify/difference.h"

namespace verbatim {

/// Name in A to name in B, of layers that are the same under two names.
using LayerNames = std::map<std::string, std::string>;

struct LayerMatching {
  /// The common layers under ids of their own, 0 … n-1 in A's order; both sides with A's names.
  std::vector<LayerRow> a;
  std::vector<LayerRow> b;
  std::vector<std::int32_t> id_in_a;  ///< by common id
  /// Common id by a side's own; -1: not common.
  std::vector<std::int32_t> common_of_a;
  std::vector<std::int32_t> common_of_b;
  /// Parameters and buffers of one side only, or of another shape, each of class spec: in A's
  /// order, then B's. Captured tensors are the recorder's choice: of one side only, they are left
  /// out.
  std::vector<Difference> differences;
};

/// Layers as StepLayersProblem found sound. kBadInput where `renames` names a layer that its side
/// does not have, or one of B's twice.
Result<LayerMatching> MatchLayers(const std::vector<LayerRow>& a, const std::vector<LayerRow>& b,
                                  const LayerNames& renames);

}  // namespace verbatim
