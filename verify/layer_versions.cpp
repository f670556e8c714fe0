#include "verify/layer_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verify/run_words.h"

namespace verbatim {

LayerVersions::LayerVersions(const LayerTable& table, SideNames names, RunKind kind)
    : table_(table), names_(std::move(names)), kind_(kind), layers_(table.layers().size()) {
  for (const LayerRow& row : table.layers()) {
    State& layer = layers_[row.layer];
    layer.position = row.position;
    layer.a.weights = layer.b.weights = row.initial_digest;
  }
}

void LayerVersions::SetInitialWeights(std::int32_t layer, const Digest& b) {
  layers_[layer].b.weights = b;
  Compare(-1, layer, false);
}

/// The status of the version that a side's access read.
const LayerVersions::VersionPair& LayerVersions::Find(const AccessRow& access,
                                                      std::int64_t VersionPair::*side) const {
  const State& state = layers_[access.layer];
  if (state.earlier.empty() || state.newest.*side <= access.read_seq) return state.newest;
  const auto found =
      std::find_if(state.earlier.rbegin(), state.earlier.rend(),
                   [&](const VersionPair& status) { return status.*side <= access.read_seq; });
  return found != state.earlier.rend() ? *found : state.earlier.front();
}

bool LayerVersions::ReadDiffers(const LayerUse& use) const {
  return (use.a != nullptr && Find(*use.a, &VersionPair::seq_a).differs) ||
         (use.b != nullptr && Find(*use.b, &VersionPair::seq_b).differs);
}

bool LayerVersions::BaseDiffers(const LayerUse& use) const {
  return (use.a != nullptr && layers_[use.a->layer].newest.differs) ||
         (use.b != nullptr && layers_[use.b->layer].newest.differs);
}

/// Before subnet `seq` writes a layer.
void LayerVersions::Keep(std::int64_t seq, std::int32_t layer) {
  const std::int64_t delay = table_.delay(layer);
  if (delay == 0) return;
  State& state = layers_[layer];
  state.earlier.push_back(state.newest);
  // The second is old enough for the next subnet, and so for all after it.
  while (state.earlier.size() > 1 &&
         std::max(state.earlier[1].seq_a, state.earlier[1].seq_b) < seq + 1 - delay) {
    state.earlier.pop_front();
  }
}

void LayerVersions::Update(std::int64_t seq, const LayerUse& use, bool taints) {
  Keep(seq, use.any().layer);
  if (use.b != nullptr && use.b->layer != use.any().layer) Keep(seq, use.b->layer);
  const auto leave = [seq](Version& version, const AccessRow& access) {
    version.seq = seq;
    version.weights = access.weights;
    version.optimizer_state = access.optimizer_state;
  };
  if (use.a != nullptr) leave(layers_[use.a->layer].a, *use.a);
  if (use.b != nullptr) leave(layers_[use.b->layer].b, *use.b);
  Compare(seq, use.any().layer, taints);
  // Where the sides chose differently, either layer was updated on one side alone.
  if (use.b != nullptr && use.b->layer != use.any().layer) Compare(seq, use.b->layer, taints);
}

void LayerVersions::Compare(std::int64_t seq, std::int32_t layer, bool taints) {
  State& state = layers_[layer];
  const bool has_digests = state.a.weights && state.b.weights;
  const bool differs = has_digests ? state.a.weights != state.b.weights ||
                                         state.a.optimizer_state != state.b.optimizer_state
                                   : taints;
  if (differs && !state.newest.differs) state.newest.differs_since = seq;
  state.newest.differs = differs;
  state.newest.seq_a = state.a.seq;
  state.newest.seq_b = state.b.seq;
}

std::string LayerVersions::TaintedCause(const LayerUse& differing) const {
  const bool is_read = ReadDiffers(differing);
  const auto status = [&](const AccessRow& access, std::int64_t VersionPair::*side) {
    return is_read ? Find(access, side) : layers_[access.layer].newest;
  };
  const bool in_a = differing.a != nullptr && status(*differing.a, &VersionPair::seq_a).differs;
  const AccessRow& access = in_a ? *differing.a : *differing.b;
  const std::int64_t since =
      status(access, in_a ? &VersionPair::seq_a : &VersionPair::seq_b).differs_since;
  return fmt::format("it {} {}, which {}", is_read ? "read" : "updated", table_.Name(access.layer),
                     since < 0 ? "has differed from the start"
                               : fmt::format("differs since {}", NameOfVersion(since)));
}

void LayerVersions::RefineCause(Difference& difference, const std::vector<LayerUse>& uses) const {
  const auto use = std::find_if(uses.begin(), uses.end(), [&](const LayerUse& candidate) {
    return difference.layer && candidate.a != nullptr && candidate.a->layer == *difference.layer;
  });
  if (difference.what == "loss" && !uses.empty() && !uses.front().has_digests()) {
    difference.cause =
        "either this forward pass differs, or an earlier update of a layer that it "
        "reads: a record at level weights would tell";
  }
  if (use == uses.end() || use->b == nullptr) return;
  if (difference.kind == DifferenceClass::kSchedule) {
    difference.cause =
        VersionCause(difference.seq.value_or(0), *use, difference.phase == Phase::kForward);
  } else if (difference.what == "weights" && use->has_digests()) {
    const std::string cause = UpdateCause(*use);
    if (!cause.empty()) difference.cause = cause;
  }
}

/// Which side saw another version than its causal predecessor's.
std::string LayerVersions::VersionCause(std::int64_t seq, const LayerUse& use, bool is_read) const {
  std::string wrong;
  const auto judge = [&](const std::string& name, AccessRow access,
                         std::int64_t VersionPair::*side) {
    const std::int64_t seen = is_read ? access.read_seq : access.base_seq;
    // What it had to read is what anybody finds who may read no later version.
    access.read_seq =
        is_read ? std::max<std::int64_t>(seq - table_.delay(access.layer), 0) - 1 : seq;
    const std::int64_t expected = Find(access, side).*side;
    if (seen == expected) return;
    wrong += fmt::format("{}{}, on stage {}, did not {} what its causal predecessor left{}",
                         wrong.empty() ? "" : "; ", name, access.stage, is_read ? "read" : "update",
                         expected < 0 ? "" : fmt::format(" (subnet {})", expected));
  };
  judge(names_.a, *use.a, &VersionPair::seq_a);
  judge(names_.b, *use.b, &VersionPair::seq_b);
  return wrong.empty() ? "the two have other causal predecessors" : wrong;
}

/// What the digests before and after an update tell of it; empty where they tell nothing.
std::string LayerVersions::UpdateCause(const LayerUse& use) const {
  const State& before = layers_[use.a->layer];
  const bool lost_in_a = use.a->weights == before.a.weights;
  const bool lost_in_b = use.b->weights == before.b.weights;
  if (lost_in_a != lost_in_b) {
    const std::int64_t predecessor = (lost_in_a ? before.a : before.b).seq;
    return fmt::format(
        "in {} the layer is as {} left it, as if the update had been lost",
        lost_in_a ? names_.a : names_.b,
        predecessor < 0 ? std::string("initialisation") : NameOfVersion(predecessor));
  }
  const bool has_states = use.a->optimizer_state && use.b->optimizer_state;
  if (has_states && use.a->optimizer_state == use.b->optimizer_state) {
    return "the loss and the optimizer state after the update were equal, the weights alone are "
           "not";
  }
  return "";
}

/// "subnet 7", "step 7".
std::string LayerVersions::NameOfVersion(std::int64_t seq) const {
  return fmt::format("{} {}", WordsOf(kind_).one, seq);
}

void LayerVersions::RefineStepCause(Difference& difference,
                                    const std::vector<LayerUse>& uses) const {
  if (difference.kind != DifferenceClass::kComputation || uses.empty()) return;
  const bool is_update = difference.phase == Phase::kUpdate;
  const std::string skipped = is_update ? SkippedUpdateCause(uses) : "";
  const auto differing = std::ranges::count_if(uses, &LayerUse::differs);
  if (!skipped.empty()) difference.cause = skipped;
  if (is_update && differing == 1 && uses.size() > 1) {
    difference.cause += "; no other layer differs after this step";
  }
  const std::int64_t before = layers_[uses.front().any().layer].newest.seq_a;
  if (before >= 0 && difference.seq.value_or(0) > before + 1) {
    difference.cause += fmt::format(
        "; it arose between step {} and step {}, of which both have none", before, *difference.seq);
  }
}

/// Whether an access left a layer as it found it, as far as both are known.
bool LayerVersions::IsAsBefore(const AccessRow& access, const Version& before) const {
  const bool has_state = access.optimizer_state && before.optimizer_state;
  return access.weights && access.weights == before.weights &&
         (!has_state || access.optimizer_state == before.optimizer_state);
}

/// Where the layers that differ are on one side, and not on the other, what the step before left.
std::string LayerVersions::SkippedUpdateCause(const std::vector<LayerUse>& uses) const {
  bool skipped_in_a = true;
  bool skipped_in_b = true;
  std::int64_t differing = 0;
  for (const LayerUse& use : uses) {
    if (!use.differs) continue;
    ++differing;
    const State& before = layers_[use.any().layer];
    skipped_in_a = skipped_in_a && IsAsBefore(*use.a, before.a);
    skipped_in_b = skipped_in_b && IsAsBefore(*use.b, before.b);
  }
  if (differing == 0 || skipped_in_a == skipped_in_b) return "";
  const std::int64_t left_by = layers_[uses.front().any().layer].newest.seq_a;
  return fmt::format(
      "in {} the update was skipped: {} as {} left {}", skipped_in_a ? names_.a : names_.b,
      differing == 1 ? "the layer is" : fmt::format("the {} layers that differ are", differing),
      left_by < 0 ? "initialisation" : NameOfVersion(left_by), differing == 1 ? "it" : "them");
}

}  // namespace verbatim
