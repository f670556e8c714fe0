// What each layer's latest access left on either side of a comparison, whether the two differ, and
// what that tells of a difference.
#pragma once

#include <cstdint>
#include <deque>
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

/// Of a layer with a delay it keeps the versions that may still be read. Both sides are taken to
/// have the table's delays.
class LayerVersions {
 public:
  /// Keeps a reference to `table`. Both sides begin with its initial weights.
  LayerVersions(const LayerTable& table, SideNames names, RunKind kind = RunKind::kSupernet);

  void SetInitialWeights(std::int32_t layer, const Digest& b);
  std::int32_t position(std::int32_t layer) const { return layers_[layer].position; }
  /// Whether a side read other content in the use than the other has in that version.
  bool ReadDiffers(const LayerUse& use) const;
  /// Likewise of the version that the use updates, which is the newest. The same without a delay.
  bool BaseDiffers(const LayerUse& use) const;
  /// After a subnet. `taints`: whether, without digests, its layers count as differing from now on.
  void Update(std::int64_t seq, const LayerUse& use, bool taints);

  /// "it read block3.1, which differs since subnet 150"; or "it updated …" where only the version
  /// updated differs.
  std::string TaintedCause(const LayerUse& differing) const;
  /// Says more of an origin's cause where versions or digests tell; before Update.
  void RefineCause(Difference& difference, const std::vector<LayerUse>& uses) const;
  /// The same of a step, whose layers all had their last access in one step.
  void RefineStepCause(Difference& difference, const std::vector<LayerUse>& uses) const;

 private:
  struct Version {
    std::int64_t seq = -1;
    std::optional<Digest> weights;
    std::optional<Digest> optimizer_state;
  };
  /// A version as either side has it.
  struct VersionPair {
    std::int64_t seq_a = -1;
    std::int64_t seq_b = -1;
    bool differs = false;
    std::int64_t differs_since = -1;
  };
  struct State {
    std::int32_t position = 0;
    VersionPair newest;
    Version a;
    Version b;
    std::deque<VersionPair> earlier;  ///< of a layer with a delay: those before, as far as readable
  };

  void Keep(std::int64_t seq, std::int32_t layer);
  void Compare(std::int64_t seq, std::int32_t layer, bool taints);
  const VersionPair& Find(const AccessRow& access, std::int64_t VersionPair::*side) const;
  std::string VersionCause(std::int64_t seq, const LayerUse& use, bool is_read) const;
  std::string UpdateCause(const LayerUse& use) const;
  bool IsAsBefore(const AccessRow& access, const Version& before) const;
  std::string SkippedUpdateCause(const std::vector<LayerUse>& uses) const;
  std::string NameOfVersion(std::int64_t seq) const;

  const LayerTable& table_;
  SideNames names_;
  RunKind kind_;
  std::vector<State> layers_;
};

}  // namespace verbatim
