#include "schedule/rank_traffic.h"

#include <algorithm>
#include <cmath>

namespace verbatim {

RankTraffic::RankTraffic(const SearchSpace& space, const CostTable& costs,
                         const Partition& partition, const Placement& placement,
                         std::int32_t microbatches, double last_microbatch)
    : space_(space),
      costs_(costs),
      partition_(partition),
      placement_(placement),
      microbatches_(microbatches),
      last_microbatch_(last_microbatch),
      graph_(space),
      layers_(space.layers().size()) {}

void RankTraffic::Add(std::int64_t seq, std::span<const std::uint16_t> choices) {
  const StageRanges ranges = partition_.Ranges(choices);
  const std::span<const CausalPredecessors> predecessors = graph_.Add(seq, choices);
  AddBoundaries(choices, ranges);
  for (int position = 0; position < space_.positions(); ++position) {
    const Layer& layer = space_.LayerAt(position, choices);
    if (!layer.IsVersioned()) continue;
    const int rank = placement_.RankOf(ranges.StageOf(position));
    const auto [read, base] = predecessors[position];
    Fetch(layer, base, rank, /*is_base=*/true);
    Fetch(layer, read, rank, /*is_base=*/false);
    std::deque<Version>& versions = layers_[layer.id];
    versions.push_back({seq, rank, {rank}});
    while (versions.size() > 1 && versions[1].seq < seq + 1 - layer.delay) versions.pop_front();
  }
}

void RankTraffic::AddBoundaries(std::span<const std::uint16_t> choices, const StageRanges& ranges) {
  bool is_trained = false;  // a layer before the boundary
  for (int stage = 0; stage + 1 < placement_.stages(); ++stage) {
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      is_trained = is_trained || space_.LayerAt(position, choices).IsVersioned();
    }
    if (placement_.RankOf(stage) == placement_.RankOf(stage + 1)) continue;
    const Layer& last = space_.LayerAt(ranges.End(stage) - 1, choices);
    const std::int64_t whole = costs_.layers[last.id].output_bytes;
    const std::int64_t bytes =
        (microbatches_ - 1) * whole + std::llround(static_cast<double>(whole) * last_microbatch_);
    bytes_.activations += bytes;
    if (is_trained) bytes_.gradients += bytes;
  }
}

void RankTraffic::Fetch(const Layer& layer, std::int64_t version, int rank, bool is_base) {
  if (version == CausalPredecessors::kNone) return;  // every rank has it
  std::deque<Version>& versions = layers_[layer.id];
  const auto found = std::find_if(versions.begin(), versions.end(),
                                  [&](const Version& v) { return v.seq == version; });
  const bool is_new_here = found->ranks.insert(rank).second;
  if (is_base ? found->writer == rank : !is_new_here) return;
  const LayerCost& cost = costs_.layers[layer.id];
  bytes_.versions += cost.parameter_bytes + (is_base ? cost.optimizer_bytes : 0);
  ++versions_;
}

}  // namespace verbatim
