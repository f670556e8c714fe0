#include "schedule/simulate/device_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbatim {

std::vector<LayerBytes> LayerBytesOf(const CostTable& costs) {
  std::vector<LayerBytes> bytes;
  for (const LayerCost& cost : costs.layers) {
    bytes.push_back({cost.parameter_bytes, cost.optimizer_bytes});
  }
  return bytes;
}

DeviceCache::DeviceCache(const SearchSpace& space, const CostTable& costs, int stages,
                         const DeviceMemoryOptions& options, const VirtualTime& time)
    : space_(space),
      time_(time),
      time_per_byte_(options.time_per_byte),
      cache_(space, LayerBytesOf(costs), stages, {options.budget_bytes, options.policy}),
      stages_(static_cast<std::size_t>(stages)) {}

void DeviceCache::Foresee(std::int64_t seq, std::span<const std::uint16_t> choices,
                          const StageRanges& ranges) {
  cache_.Foresee(seq, choices, ranges);
  is_stale_ = true;
}

const std::vector<Residency>& DeviceCache::Admit(std::int64_t seq) {
  ready_.clear();
  cache_.Admit(seq, ready_);
  return Ready();
}

const std::vector<Residency>& DeviceCache::Updated(const Residency& part) {
  ready_.clear();
  cache_.Updated(part, ready_);
  return Ready();
}

const std::vector<Residency>& DeviceCache::Finish(int stage, Transfer::Kind kind) {
  ready_.clear();
  cache_.Finished(*std::exchange(EngineOf(stage, kind), std::nullopt), ready_);
  return Ready();
}

const std::vector<Residency>& DeviceCache::Ready() {
  is_stale_ = true;
  for (const Residency& part : ready_) {
    if (stages_[part.stage].stalled.erase(part.seq) == 0) resident_.insert(part);
  }
  return ready_;
}

void DeviceCache::Want(const Residency& part) {
  is_stale_ = true;
  cache_.Want(part);
  if (resident_.erase(part) == 0) stages_[part.stage].stalled.insert(part.seq);
}

const std::vector<DeviceCache::Begun>& DeviceCache::BeginTransfers() {
  begun_.clear();
  // A load may give up a copy on another stage, which makes room there.
  while (std::exchange(is_stale_, false)) {
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
      const bool writes = BeginTransfer(stage, Transfer::Kind::kWriteBack);
      const bool loads = BeginTransfer(stage, Transfer::Kind::kLoad);
      is_stale_ = is_stale_ || writes || loads;
    }
  }
  return begun_;
}

bool DeviceCache::BeginTransfer(int stage, Transfer::Kind kind) {
  std::optional<Transfer>& engine = EngineOf(stage, kind);
  if (engine) return false;
  engine = cache_.Next(stage, kind);
  if (!engine) return false;
  begun_.push_back({stage, kind, time_.Of(time_per_byte_ * static_cast<double>(engine->bytes))});
  return true;
}

void DeviceCache::Idle(int index, Ticks duration) {
  Stage& stage = stages_[index];
  if (stage.stalled.empty()) return;
  stage.stall += duration;
  const bool has_room = cache_.IsSetAside({*stage.stalled.begin(), index});
  if (!has_room) stage.stall_for_room += duration;
}

DeviceMemoryUse DeviceCache::Report() const {
  DeviceMemoryUse use;
  use.cache = cache_.statistics();
  for (const Stage& stage : stages_) {
    use.stall.push_back(time_.Units(stage.stall));
    use.stall_for_room.push_back(time_.Units(stage.stall_for_room));
  }
  return use;
}

}  // namespace verbatim
