// What each layer's latest access left on either side of a comparison, whether the two differ, and
// what that tells of a difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/record.h"
#include "verify/difference.h"
#include "verify/layer_table.h"

namespace verbatim {

/// What the two executions are called in causes.
struct SideNames {
  std::string a = "the record";
  std::string b = "the reference";
};

/// One position's access on both sides; null where a side has none there.
struct LayerUse {
  const AccessRow* a = nullptr;
  const AccessRow* b = nullptr;
  std::int32_t position = 0;
  bool differs = false;  ///< in something that both hold, or in the layer itself

  const AccessRow& any() const { return a != nullptr ? *a : *b; }
  /// Whether both sides hold digests of it.
  bool has_digests() const { return a != nullptr && b != nullptr && a->weights && b->weights; }
};

class LayerVersions {
 public:
  /// Keeps a reference to `table`. Both sides begin with its initial weights.
  LayerVersions(const LayerTable& table, SideNames names);

  void SetInitialWeights(std::int32_t layer, const Digest& b);
  std::int32_t position(std::int32_t layer) const { return layers_[layer].position; }
  /// Whether a side's next read of one of the use's layers finds other content than the other's.
  bool ReadDiffers(const LayerUse& use) const {
    return (use.a != nullptr && layers_[use.a->layer].differs) ||
           (use.b != nullptr && layers_[use.b->layer].differs);
  }
  /// After a subnet. `taints`: whether, without digests, its layers count as differing from now on.
  void Update(std::int64_t seq, const LayerUse& use, bool taints);

  /// "it read block3.1, which differs since subnet 150".
  std::string TaintedCause(const LayerUse& differing_read) const;
  /// Says more of an origin's cause where versions or digests tell; before Update.
  void RefineCause(Difference& difference, const std::vector<LayerUse>& uses) const;

 private:
  struct Version {
    std::int64_t seq = -1;
    std::optional<Digest> weights;
    std::optional<Digest> optimizer_state;
  };
  struct State {
    std::int32_t position = 0;
    bool differs = false;
    std::int64_t differs_since = -1;
    Version a;
    Version b;
  };

  void Compare(std::int64_t seq, std::int32_t layer, bool taints);
  std::string VersionCause(const LayerUse& use, bool is_read) const;
  std::string UpdateCause(const LayerUse& use) const;

  const LayerTable& table_;
  SideNames names_;
  std::vector<State> layers_;
};

}  // namespace verbatim
