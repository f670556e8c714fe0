#include "schedule/layer_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace verbatim {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct NamedPolicy {
  std::string_view name;
  CachePolicy policy;
};
constexpr NamedPolicy kPolicies[] = {{"lookahead", CachePolicy::kLookAhead},
                                     {"on-demand", CachePolicy::kOnDemand},
                                     {"lru", CachePolicy::kLru}};

}  // namespace

Result<CachePolicy> ParseCachePolicy(std::string_view name) {
  for (const NamedPolicy& known : kPolicies) {
    if (known.name == name) return known.policy;
  }
  return UsageError(fmt::format("--cache {}: no such policy", name),
                    fmt::format("use one of {}", fmt::join(CachePolicyNames(), ", ")));
}

std::string_view NameOf(CachePolicy policy) {
  for (const NamedPolicy& known : kPolicies) {
    if (known.policy == policy) return known.name;
  }
  return "";
}

std::vector<std::string> CachePolicyNames() {
  std::vector<std::string> names;
  for (const NamedPolicy& known : kPolicies) names.emplace_back(known.name);
  return names;
}

double CacheStatistics::HitRate() const {
  const std::int64_t all = hits + misses;
  return all == 0 ? 1.0 : static_cast<double>(hits) / static_cast<double>(all);
}

LayerCache::LayerCache(const SearchSpace& space, std::vector<LayerBytes> bytes, int stages,
                       const LayerCacheOptions& options)
    : LayerCache(space, std::move(bytes), stages, {0, stages}, options) {}

LayerCache::LayerCache(const SearchSpace& space, std::vector<LayerBytes> bytes, int stages,
                       const StagePart& part, const LayerCacheOptions& options)
    : space_(space),
      bytes_(std::move(bytes)),
      part_(part),
      policy_(options.policy),
      layers_(space.layers().size()) {
  VERBATIM_CHECK(bytes_.size() == layers_.size());
  VERBATIM_CHECK(0 <= part.begin && part.begin < part.end && part.end <= stages);
  for (int stage = 0; stage < stages; ++stage) {
    const bool is_own = part_.Contains(stage);
    const std::int64_t permanent = is_own ? PermanentBytes(space, bytes_, stage, stages) : 0;
    stages_.push_back({StageMemory(is_own ? options.budget_bytes : 0, permanent), {}, {}});
    statistics_.peak_bytes.push_back(permanent);
  }
}

void LayerCache::Foresee(std::int64_t seq, std::span<const std::uint16_t> choices,
                         const StageRanges& ranges) {
  VERBATIM_CHECK(seq > last_foreseen_, "seq {} after {}", seq, last_foreseen_);
  last_foreseen_ = seq;
  Subnet& subnet = subnets_[seq];
  subnet.ordinal = foreseen_++;
  subnet.parts.resize(stages_.size());
  subnet.parts_unfinished = part_.end - part_.begin;
  for (int stage = 0; stage < ranges.stages(); ++stage) {
    std::int64_t bytes = 0;
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      const Layer& layer = space_.LayerAt(position, choices);
      if (IsPermanent(layer) || BytesOf(layer.id) == 0) continue;
      if (!part_.Contains(stage)) {
        ForeseeElsewhere({seq, stage}, layer);
        continue;
      }
      bytes += BytesOf(layer.id);
      subnet.parts[stage].layers.push_back(layer.id);
      layers_[layer.id].uses.push_back({seq, stage});
      Review(layer.id, stage);
    }
    const std::int64_t room = stages_[stage].memory.room();
    VERBATIM_CHECK(bytes <= room, "subnet {} on stage {}: {} of {} bytes", seq, stage, bytes, room);
  }
}

void LayerCache::ForeseeElsewhere(const Use& use, const Layer& layer) {
  std::deque<Use>& uses = layers_[layer.id].uses;
  const bool follows_another = !uses.empty() && !part_.Contains(uses.back().stage);
  if (layer.IsVersioned() && !follows_another) uses.push_back(use);
}

void LayerCache::Admit(std::int64_t seq, std::vector<Residency>& ready) {
  const auto subnet = subnets_.upper_bound(last_admitted_);
  VERBATIM_CHECK(subnet != subnets_.end() && subnet->first == seq, "seq {} after {}", seq,
                 last_admitted_);
  last_admitted_ = seq;
  ++admitted_;
  is_settling_ = false;
  subnet->second.is_admitted = true;
  for (int stage = part_.begin; stage < part_.end; ++stage) {
    stages_[stage].waiting.push_back(seq);
    SetAside(stage, ready);
  }
}

void LayerCache::SetAside(int stage, std::vector<Residency>& ready) {
  auto& [memory, waiting, needs, is_loading, is_writing] = stages_[stage];
  while (!waiting.empty()) {
    const Residency id{waiting.front(), stage};
    Part& part = PartOf(id);
    std::int64_t bytes = 0;
    for (const int layer : part.layers) bytes += memory.IsClaimed(layer) ? 0 : BytesOf(layer);
    if (memory.set_aside() + bytes > memory.room()) return;
    waiting.pop_front();
    for (const int layer : part.layers) memory.Claim(layer, BytesOf(layer));
    part.is_set_aside = true;
    for (const int layer : part.layers) Review(layer, stage);
    Give(id, ready);
  }
}

void LayerCache::Want(const Residency& id) {
  Part& part = PartOf(id);
  VERBATIM_CHECK(!part.is_wanted, "subnet {} on stage {}", id.seq, id.stage);
  part.is_wanted = true;
  for (const int layer : part.layers) {
    ++(IsInPlace(layer, id) ? statistics_.hits : statistics_.misses);
    Review(layer, id.stage);
  }
}

void LayerCache::Updated(const Residency& id, std::vector<Residency>& ready) {
  Part& part = PartOf(id);
  VERBATIM_CHECK(part.is_given && !part.is_updated, "subnet {} on stage {}", id.seq, id.stage);
  part.is_updated = true;
  StageMemory& memory = stages_[id.stage].memory;
  for (const int layer : part.layers) {
    std::deque<Use>& uses = layers_[layer].uses;
    const auto use =
        std::find_if(uses.begin(), uses.end(), [&](const Use& u) { return u.seq == id.seq; });
    VERBATIM_CHECK(use != uses.end() && (use == uses.begin() || !IsVersioned(layer)));
    uses.erase(use);
    memory.Unclaim(layer, BytesOf(layer));
    StageMemory::Copy& copy = *memory.Find(layer);
    copy.used_at = uses_made_++;
    copy.is_dirty = IsVersioned(layer);
  }
  for (const int layer : part.layers) GiveNextUser(layer, id.stage, ready);
  SetAside(id.stage, ready);
  if (--subnets_.at(id.seq).parts_unfinished == 0) subnets_.erase(id.seq);
}

bool LayerCache::IsAtHome(int layer) const {
  const int stage = layers_[layer].stage;
  return stage < 0 || stages_[stage].memory.copies().at(layer).IsClean();
}

std::optional<LayerCopy> LayerCache::Left(int layer) {
  const LayerState& state = layers_[layer];
  VERBATIM_CHECK(IsVersioned(layer) && IsAtHome(layer));
  VERBATIM_CHECK(!state.uses.empty() && !part_.Contains(state.uses.front().stage));
  if (state.stage < 0) return std::nullopt;
  std::vector<LayerCopy> dropped;
  Drop(state.stage, layer, dropped);
  return dropped.front();
}

bool LayerCache::Arrived(int layer, std::int64_t seq) {
  std::deque<Use>& uses = layers_[layer].uses;
  const bool is_awaited = uses.size() > 1 && !part_.Contains(uses[0].stage) && uses[1].seq == seq;
  if (!is_awaited || layers_[layer].stage >= 0) return false;
  uses.pop_front();
  ReviewNextUser(layer);
  return true;
}

bool LayerCache::IsInPlace(int layer, const Residency& part) {
  const StageMemory::Copy* const copy = stages_[part.stage].memory.Find(layer);
  if (copy == nullptr || copy->is_loading || copy->is_writing) return false;
  return !IsVersioned(layer) || layers_[layer].uses.front().seq == part.seq;
}

void LayerCache::Give(const Residency& id, std::vector<Residency>& ready) {
  Part& part = PartOf(id);
  if (!part.is_set_aside || part.is_given) return;
  for (const int layer : part.layers) {
    if (!IsInPlace(layer, id)) return;
  }
  part.is_given = true;
  ready.push_back(id);
}

void LayerCache::GiveNextUser(int layer, int stage, std::vector<Residency>& ready) {
  for (const Use& use : layers_[layer].uses) {
    if (use.stage == stage) Give({use.seq, stage}, ready);
    // Room is set aside in seq order, so that no later one has any either.
    const bool may_have_more = use.stage != stage || PartOf({use.seq, stage}).is_set_aside;
    if (IsVersioned(layer) || !may_have_more) return;
  }
}

std::optional<std::int64_t> LayerCache::NextUse(int layer, int stage) const {
  for (const Use& use : layers_[layer].uses) {
    if (use.stage == stage) return use.seq;
    if (IsVersioned(layer)) break;
  }
  return std::nullopt;
}

bool LayerCache::IsDue(const Residency& id) {
  if (policy_ == CachePolicy::kLookAhead) return true;
  const Part& part = PartOf(id);
  return part.is_set_aside && part.is_wanted;
}

std::optional<std::int64_t> LayerCache::NeedOf(int layer, int stage) {
  const LayerState& state = layers_[layer];
  if (stages_[stage].memory.Find(layer) != nullptr) return std::nullopt;
  if (IsVersioned(layer) && state.stage >= 0 &&
      !stages_[state.stage].memory.Find(layer)->IsClean()) {
    return std::nullopt;  // home has an older version
  }
  for (const Use& use : state.uses) {
    if (use.stage == stage && IsDue({use.seq, stage})) return use.seq;
    if (IsVersioned(layer)) break;
  }
  return std::nullopt;
}

void LayerCache::Review(int layer, int stage) {
  auto& own = layers_[layer].needs;
  auto& needs = stages_[stage].needs;
  const std::optional<std::int64_t> need = NeedOf(layer, stage);
  const auto known = own.find(stage);
  if (known != own.end()) {
    if (known->second == need) return;
    needs.erase({known->second, layer});
    own.erase(known);
  }
  if (!need) return;
  own[stage] = *need;
  needs.insert({*need, layer});
}

void LayerCache::ReviewNextUser(int layer) {
  const std::deque<Use>& uses = layers_[layer].uses;
  if (!uses.empty() && part_.Contains(uses.front().stage)) Review(layer, uses.front().stage);
}

std::optional<Transfer> LayerCache::Next(int stage, Transfer::Kind kind) {
  return kind == Transfer::Kind::kLoad ? NextLoad(stage) : NextWriteBack(stage);
}

std::optional<Transfer> LayerCache::NextLoad(int index) {
  Stage& stage = stages_[index];
  if (stage.is_loading || is_settling_ || stage.needs.empty()) return std::nullopt;
  const auto [seq, layer] = *stage.needs.begin();
  const auto victims = Victims(index, layer, seq);
  if (!victims) return std::nullopt;
  Transfer transfer{Transfer::Kind::kLoad, index, layer, BytesOf(layer), {}};
  for (const int victim : *victims) Drop(index, victim, transfer.dropped);
  if (IsVersioned(layer)) {
    LayerState& state = layers_[layer];
    if (state.stage >= 0) Drop(state.stage, layer, transfer.dropped);
    state.stage = index;
  }
  stage.memory.Add(layer, transfer.bytes);
  Review(layer, index);
  stage.is_loading = true;
  ++statistics_.loads;
  statistics_.bytes_loaded += transfer.bytes;
  statistics_.peak_bytes[index] = stage.memory.peak();
  return transfer;
}

std::optional<std::vector<int>> LayerCache::Victims(int index, int layer, std::int64_t seq) {
  const StageMemory& memory = stages_[index].memory;
  const bool is_set_aside = PartOf({seq, index}).is_set_aside;
  // What is loaded ahead of its turn takes no room that is set aside for others.
  const std::int64_t occupied = is_set_aside ? memory.held() : memory.taken();
  std::int64_t lacking = occupied + BytesOf(layer) - memory.room();
  std::vector<int> victims;
  if (lacking <= 0) return victims;
  // Further ahead loads would only take the place of others: more copies, and no less waiting.
  const bool is_near = subnets_.at(seq).ordinal <= admitted_;
  for (const auto& [other, copy] : memory.copies()) {
    if (!copy.IsClean() || memory.IsClaimed(other)) continue;
    const std::int64_t next = NextUse(other, index).value_or(kNever);
    if (is_set_aside || (next > seq && (next == kNever || is_near))) victims.push_back(other);
  }
  std::sort(victims.begin(), victims.end(), [&](int a, int b) { return GoesBefore(index, a, b); });
  std::size_t taken = 0;
  while (lacking > 0 && taken < victims.size()) lacking -= BytesOf(victims[taken++]);
  if (lacking > 0) return std::nullopt;
  victims.resize(taken);
  return victims;
}

bool LayerCache::GoesBefore(int stage, int a, int b) {
  if (policy_ == CachePolicy::kLru) {
    StageMemory& memory = stages_[stage].memory;
    return memory.Find(a)->used_at < memory.Find(b)->used_at;
  }
  const std::int64_t next_a = NextUse(a, stage).value_or(kNever);
  const std::int64_t next_b = NextUse(b, stage).value_or(kNever);
  return next_a != next_b ? next_a > next_b : a < b;
}

void LayerCache::Drop(int stage, int layer, std::vector<LayerCopy>& dropped) {
  stages_[stage].memory.Remove(layer, BytesOf(layer));
  dropped.push_back({stage, layer});
  if (IsVersioned(layer)) {
    layers_[layer].stage = -1;
    ReviewNextUser(layer);
  } else {
    Review(layer, stage);
  }
}

std::optional<Transfer> LayerCache::NextWriteBack(int index) {
  Stage& stage = stages_[index];
  if (stage.is_writing) return std::nullopt;
  std::optional<std::pair<int, std::int64_t>> least;
  int layer = -1;
  for (const auto& [id, copy] : stage.memory.copies()) {
    if (!copy.is_dirty) continue;
    const auto urgency = WriteUrgency(index, id);
    if (!urgency || (least && *least <= *urgency)) continue;
    least = urgency;
    layer = id;
  }
  if (!least) return std::nullopt;
  stage.memory.Find(layer)->is_writing = true;
  stage.is_writing = true;
  statistics_.bytes_written += BytesOf(layer);
  return Transfer{Transfer::Kind::kWriteBack, index, layer, BytesOf(layer), {}};
}

std::optional<std::pair<int, std::int64_t>> LayerCache::WriteUrgency(int stage, int layer) {
  const std::deque<Use>& uses = layers_[layer].uses;
  if (uses.empty()) return std::pair{1, kNever};
  const Use& next = uses.front();
  if (next.stage != stage) return std::pair{0, next.seq};
  if (is_settling_ || !subnets_.at(next.seq).is_admitted) return std::pair{1, next.seq};
  if (PartOf({next.seq, stage}).is_set_aside || !IsShort(stage)) return std::nullopt;
  return std::pair{1, next.seq};
}

bool LayerCache::IsShort(int index) {
  const auto& needs = stages_[index].needs;
  if (needs.empty()) return false;
  const auto [seq, layer] = *needs.begin();
  return PartOf({seq, index}).is_set_aside && !Victims(index, layer, seq);
}

void LayerCache::Finished(const Transfer& transfer, std::vector<Residency>& ready) {
  Stage& stage = stages_[transfer.stage];
  StageMemory::Copy& copy = *stage.memory.Find(transfer.layer);
  if (transfer.kind == Transfer::Kind::kLoad) {
    VERBATIM_CHECK(stage.is_loading && copy.is_loading);
    stage.is_loading = copy.is_loading = false;
  } else {
    VERBATIM_CHECK(stage.is_writing && copy.is_writing);
    stage.is_writing = copy.is_writing = copy.is_dirty = false;
    ReviewNextUser(transfer.layer);
  }
  GiveNextUser(transfer.layer, transfer.stage, ready);
}

void LayerCache::Settle() {
  for (const auto& [seq, subnet] : subnets_) {
    VERBATIM_CHECK(!subnet.is_admitted, "subnet {} is under way", seq);
  }
  is_settling_ = true;
}

bool LayerCache::IsSettled() const {
  const auto is_settled = [](const Stage& stage) {
    const auto& copies = stage.memory.copies();
    return std::all_of(copies.begin(), copies.end(),
                       [](const auto& copy) { return copy.second.IsClean(); });
  };
  return is_settling_ && std::all_of(stages_.begin(), stages_.end(), is_settled);
}

std::vector<LayerCopy> LayerCache::DropAll() {
  VERBATIM_CHECK(IsSettled());
  std::vector<LayerCopy> dropped;
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
    while (!stages_[stage].memory.copies().empty()) {
      Drop(stage, stages_[stage].memory.copies().begin()->first, dropped);
    }
  }
  return dropped;
}

bool LayerCache::IsSetAside(const Residency& part) const {
  return subnets_.at(part.seq).parts[part.stage].is_set_aside;
}

std::int64_t LayerCache::HeldBytes(int stage) const {
  return stages_[stage].memory.permanent() + stages_[stage].memory.held();
}

}  // namespace verbatim
