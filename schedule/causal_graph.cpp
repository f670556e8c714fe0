#include "schedule/causal_graph.h"

namespace verbatim {

CausalGraph::CausalGraph(const SearchSpace& space)
    : space_(space),
      last_user_(space.layers().size(), kNone),
      predecessors_(static_cast<std::size_t>(space.positions()), kNone) {}

std::span<const std::int64_t> CausalGraph::Add(std::int64_t seq,
                                               std::span<const std::uint16_t> choices) {
  for (int position = 0; position < space_.positions(); ++position) {
    const Layer& layer = space_.LayerAt(position, choices);
    predecessors_[position] = kNone;
    if (!layer.IsVersioned()) continue;
    predecessors_[position] = last_user_[layer.id];
    last_user_[layer.id] = seq;
  }
  return predecessors_;
}

}  // namespace verbatim
