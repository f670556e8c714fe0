#include "verify/run_comparison.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "verify/run_difference.h"
#include "verify/subnet_difference.h"

namespace verbatim {
namespace {

/// Whether both hold a digest, and not the same.
bool Differ(const std::optional<Digest>& a, const std::optional<Digest>& b) {
  return a && b && *a != *b;
}

bool Differ(const AccessRow& a, const AccessRow& b) {
  return a.layer != b.layer || a.read_seq != b.read_seq || a.base_seq != b.base_seq ||
         Differ(a.weights, b.weights) || Differ(a.optimizer_state, b.optimizer_state) ||
         Differ(a.gradients, b.gradients);
}

/// In everything but accesses.
bool RowsDiffer(const SubnetRow& a, const SubnetRow& b) {
  const bool both_have_activations = !a.activations.empty() && !b.activations.empty();
  return a.loss_bits != b.loss_bits || a.batch_digest != b.batch_digest || a.choices != b.choices ||
         a.samples != b.samples || (both_have_activations && a.activations != b.activations);
}

}  // namespace

RunComparison::RunComparison(const LayerTable& table, std::int64_t subnets_expected,
                             SideNames names, ComparisonMode mode)
    : table_(table),
      names_(std::move(names)),
      mode_(mode),
      versions_(table, names_, mode.kind),
      counts_(table.layers().size()) {
  constexpr std::int64_t kColumns = EqualityMap::kColumnsMax;
  result_.map.positions = table.positions();
  result_.map.subnets_per_column =
      std::max(std::int64_t{1}, (subnets_expected + kColumns - 1) / kColumns);
}

std::optional<Difference> RunComparison::VisitLayers(const std::vector<LayerRow>& b) {
  VERBATIM_CHECK(last_seq_ < 0 && b.size() == table_.layers().size());
  for (const LayerRow& row : b) versions_.SetInitialWeights(row.layer, row.initial_digest);
  auto difference = CompareInitialWeights(table_.layers(), b);
  if (difference) difference->run = mode_.kind;
  if (difference) CountSubnet(last_seq_, {Equality::kOrigin, difference});
  return difference;
}

std::optional<Difference> RunComparison::Visit(const SubnetRow& a, const SubnetRow& b) {
  VERBATIM_CHECK(a.seq == b.seq && a.seq > last_seq_, "subnets {} and {} after {}", a.seq, b.seq,
                 last_seq_);
  before_ = std::exchange(last_seq_, a.seq);
  PairAccesses(a, b);
  const LayerUse* const read = FirstUse(&LayerVersions::ReadDiffers);
  const LayerUse* const base = FirstUse(&LayerVersions::BaseDiffers);
  const bool rows_differ = is_steps() ? Steps(a, b).RowsDiffer() : RowsDiffer(a, b);
  const bool is_different =
      rows_differ ||
      std::any_of(uses_.begin(), uses_.end(), [](const LayerUse& use) { return use.differs; });
  Finding finding;
  if (is_different) {
    const bool by_base = read == nullptr && !rows_differ && UpdatesAreTainted();
    finding = Classify(a, b, by_base ? base : read);
  }
  ++result_.subnets_compared;
  result_.subnets_equal += is_different ? 0 : 1;
  CountSubnet(a.seq, finding);
  const bool taints = is_different || read != nullptr || base != nullptr;
  for (const LayerUse& use : uses_) {
    CountAccess(a.seq, use, finding);
    versions_.Update(a.seq, use, taints);
  }
  return std::move(finding.difference);
}

/// Both sides' accesses ascend by layer, and so by position.
void RunComparison::PairAccesses(const SubnetRow& a, const SubnetRow& b) {
  uses_.clear();
  auto of_a = a.accesses.begin();
  auto of_b = b.accesses.begin();
  while (of_a != a.accesses.end() || of_b != b.accesses.end()) {
    const int none = table_.positions();
    const int at_a = of_a == a.accesses.end() ? none : versions_.position(of_a->layer);
    const int at_b = of_b == b.accesses.end() ? none : versions_.position(of_b->layer);
    LayerUse use;
    use.position = std::min(at_a, at_b);
    if (at_a == use.position) use.a = &*of_a++;
    if (at_b == use.position) use.b = &*of_b++;
    use.differs = use.a == nullptr || use.b == nullptr || Differ(*use.a, *use.b);
    uses_.push_back(use);
  }
}

const LayerUse* RunComparison::FirstUse(bool (LayerVersions::*differs)(const LayerUse&)
                                            const) const {
  const auto use = std::find_if(uses_.begin(), uses_.end(),
                                [&](const LayerUse& each) { return (versions_.*differs)(each); });
  return use == uses_.end() ? nullptr : &*use;
}

/// Whether every access that differs was applied to a version that differs, with equal gradients.
bool RunComparison::UpdatesAreTainted() const {
  return std::all_of(uses_.begin(), uses_.end(), [this](const LayerUse& use) {
    if (!use.differs) return true;
    const bool has_both = use.a != nullptr && use.b != nullptr;
    return has_both && versions_.BaseDiffers(use) && !Differ(use.a->gradients, use.b->gradients);
  });
}

/// An origin's own difference is none that a version updated brought along.
SubnetRow RunComparison::WithoutTaintedUpdates(SubnetRow a) const {
  for (const LayerUse& use : uses_) {
    if (use.a == nullptr || use.b == nullptr || !versions_.BaseDiffers(use)) continue;
    const auto access = std::find_if(a.accesses.begin(), a.accesses.end(),
                                     [&](const auto& each) { return each.layer == use.a->layer; });
    access->weights.reset();
    access->optimizer_state.reset();
  }
  return a;
}

std::optional<Difference> RunComparison::FirstInput(const SubnetRow& a, const SubnetRow& b) const {
  return is_steps() ? Steps(a, b).FirstInput() : CompareSubnetInputs(table_, a, b);
}

std::optional<Difference> RunComparison::First(const SubnetRow& a, const SubnetRow& b) const {
  return is_steps() ? Steps(a, b).First() : CompareSubnetRows(table_, a, b);
}

RunComparison::Finding RunComparison::Classify(const SubnetRow& a, const SubnetRow& b,
                                               const LayerUse* tainted_by) const {
  Finding finding{Equality::kOrigin, std::nullopt};
  if (tainted_by != nullptr) finding.difference = FirstInput(a, b);
  const bool is_tainted = tainted_by != nullptr && !finding.difference;
  if (!finding.difference) {
    finding.difference = First(is_tainted ? a : WithoutTaintedUpdates(a), b);
  }
  VERBATIM_CHECK(finding.difference.has_value(), "subnet {} differs in nothing", a.seq);
  if (is_tainted) {
    finding.equality = Equality::kTainted;
    finding.difference->cause = versions_.TaintedCause(*tainted_by);
  } else if (is_steps()) {
    versions_.RefineStepCause(*finding.difference, uses_);
  } else {
    versions_.RefineCause(*finding.difference, uses_);
  }
  return finding;
}

void RunComparison::CountSubnet(std::int64_t seq, const Finding& finding) {
  if (finding.equality == Equality::kOrigin) {
    ++result_.origin_count;
    if (result_.origins.size() < kOriginsKept) result_.origins.push_back(*finding.difference);
    // Where an unversioned layer differs, such as in an activation, no access will show it.
    if (seq >= 0 && finding.difference->layer) {
      Mark(versions_.position(*finding.difference->layer), Equality::kOrigin);
    }
  } else if (finding.equality == Equality::kTainted) {
    ++result_.tainted_count;
    const std::int64_t before = is_steps() ? before_ : seq - 1;
    const bool extends = !result_.tainted.empty() && result_.tainted.back().last == before;
    if (extends) {
      result_.tainted.back().last = seq;
    } else {
      result_.tainted.push_back({seq, seq});
    }
  }
}

void RunComparison::CountAccess(std::int64_t seq, const LayerUse& use, const Finding& finding) {
  const Equality equality = AccessEquality(use, finding);
  Mark(use.position, equality);
  ++result_.accesses_compared;
  if (equality == Equality::kEqual) return;
  ++result_.accesses_different;
  CountLayer(seq, use.a);
  const bool is_same_layer = use.a != nullptr && use.b != nullptr && use.a->layer == use.b->layer;
  if (!is_same_layer) CountLayer(seq, use.b);
}

Equality RunComparison::AccessEquality(const LayerUse& use, const Finding& finding) const {
  // Without digests what the subnet's loss says stands for all its updates.
  const bool differs = use.differs || (!use.has_digests() && finding.difference);
  if (!differs) return Equality::kEqual;
  if (finding.equality == Equality::kTainted) return Equality::kTainted;
  const std::optional<std::int32_t>& origin = finding.difference->layer;
  const bool is_origin = !origin || versions_.position(*origin) == use.position;
  return is_origin ? Equality::kOrigin : Equality::kTainted;
}

void RunComparison::CountLayer(std::int64_t seq, const AccessRow* access) {
  if (access == nullptr) return;
  LayerCount& count = counts_[access->layer];
  if (count.accesses++ == 0) count.first_seq = seq;
}

void RunComparison::Mark(std::int32_t position, Equality equality) {
  EqualityMap& map = result_.map;
  // Numbers of steps may lie far apart: their columns are those of the steps compared.
  const std::int64_t seq = is_steps() ? result_.subnets_compared - 1 : last_seq_;
  const std::int64_t column = std::min(seq / map.subnets_per_column, EqualityMap::kColumnsMax - 1);
  const auto end = static_cast<std::size_t>((column + 1) * map.positions);
  if (map.cells.size() < end) map.cells.resize(end, Equality::kNotCompared);
  Equality& cell = map.cells[static_cast<std::size_t>(column * map.positions + position)];
  cell = std::max(cell, equality);
}

Comparison RunComparison::Finish() {
  for (const LayerRow& row : table_.layers()) {
    const LayerCount& count = counts_[row.layer];
    if (count.accesses == 0) continue;
    result_.layers.push_back({row.layer, row.name, count.first_seq, count.accesses});
  }
  std::stable_sort(
      result_.layers.begin(), result_.layers.end(),
      [](const LayerTaint& a, const LayerTaint& b) { return a.first_seq < b.first_seq; });
  return std::move(result_);
}

}  // namespace verbatim
