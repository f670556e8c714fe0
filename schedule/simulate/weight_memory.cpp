#include "schedule/simulate/weight_memory.h"

#include <algorithm>

#include "base/check.h"

namespace verbatim {

WeightMemory::WeightMemory(const SearchSpace& space, const CostTable& costs,
                           const StageRanges& home)
    : space_(space),
      costs_(costs),
      versions_(space.layers().size()),
      bytes_(static_cast<std::size_t>(home.stages())),
      peak_(static_cast<std::size_t>(home.stages())) {
  for (const Layer& layer : space.layers()) {
    const int stage = home.StageOf(layer.position);
    const LayerCost& cost = costs.layers[layer.id];
    versions_[layer.id].push_back({-1, stage, 0});
    Occupy(stage, cost.parameter_bytes + cost.optimizer_bytes);
  }
}

void WeightMemory::Occupy(int stage, std::int64_t bytes) {
  bytes_[stage] += bytes;
  peak_[stage] = std::max(peak_[stage], bytes_[stage]);
}

std::int64_t WeightMemory::Read(int layer, std::int64_t seq) {
  std::vector<Version>& versions = versions_[layer];
  const std::int64_t delay = space_.layer(layer).delay;
  Version* seen = &versions.back();
  if (delay > 0) {
    seen = &versions.front();
    for (Version& version : versions) {
      if (version.seq < seq - delay && version.seq >= seen->seq) seen = &version;
    }
  }
  ++seen->readers;
  return seen->seq;
}

std::int64_t WeightMemory::Update(int layer, std::int64_t seq, std::int64_t read, int stage,
                                  std::int64_t lowest_unfinished) {
  std::vector<Version>& versions = versions_[layer];
  const auto was_read = std::find_if(versions.begin(), versions.end(),
                                     [read](const Version& v) { return v.seq == read; });
  VERBATIM_CHECK(was_read != versions.end(), "layer {} has no version {}", layer, read);
  --was_read->readers;
  const Version base = versions.back();
  versions.push_back({seq, stage, 0});
  Occupy(base.stage, -costs_.layers[layer].optimizer_bytes);
  Occupy(stage, costs_.layers[layer].optimizer_bytes);
  // An update overwrites its base in place where nobody else needs that.
  bytes_[stage] += costs_.layers[layer].parameter_bytes;
  DropUnneeded(layer, lowest_unfinished);
  Occupy(stage, 0);
  return base.seq;
}

void WeightMemory::DropUnneeded(int layer, std::int64_t lowest_unfinished) {
  std::vector<Version>& versions = versions_[layer];
  const std::int64_t delay = space_.layer(layer).delay;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const bool is_newest = i + 1 == versions.size();
    // Whoever reads later than `delay` after the next version reads that or a newer one.
    const bool may_be_read =
        is_newest || (delay > 0 && lowest_unfinished <= versions[i + 1].seq + delay);
    if (may_be_read || versions[i].readers > 0) {
      versions[kept++] = versions[i];
    } else {
      bytes_[versions[i].stage] -= costs_.layers[layer].parameter_bytes;
    }
  }
  versions.resize(kept);
}

void WeightMemory::MoveNewest(int layer, int stage) {
  Version& newest = versions_[layer].back();
  const LayerCost& cost = costs_.layers[layer];
  const std::int64_t bytes = cost.parameter_bytes + cost.optimizer_bytes;
  Occupy(newest.stage, -bytes);
  newest.stage = stage;
  Occupy(stage, bytes);
}

}  // namespace verbatim
