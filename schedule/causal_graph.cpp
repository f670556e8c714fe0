#include "schedule/causal_graph.h"

namespace verbatim {

CausalGraph::CausalGraph(const SearchSpace& space)
    : space_(space),
      last_user_(space.layers().size(), CausalPredecessors::kNone),
      predecessors_(static_cast<std::size_t>(space.positions())) {}

std::span<const CausalPredecessors> CausalGraph::Add(std::int64_t seq,
                                                     std::span<const std::uint16_t> choices) {
  for (int position = 0; position < space_.positions(); ++position) {
    const Layer& layer = space_.LayerAt(position, choices);
    predecessors_[position] = {};
    if (!layer.IsVersioned()) continue;
    const std::int64_t base = last_user_[layer.id];
    predecessors_[position] = {layer.delay == 0 ? base : ReadPredecessor(layer, seq), base};
    last_user_[layer.id] = seq;
  }
  return predecessors_;
}

std::int64_t CausalGraph::ReadPredecessor(const Layer& layer, std::int64_t seq) {
  std::deque<std::int64_t>& users = users_[layer.id];
  // The front stays as long as it is the greatest that is old enough.
  while (users.size() > 1 && users[1] < seq - layer.delay) users.pop_front();
  const bool is_old_enough = !users.empty() && users.front() < seq - layer.delay;
  const std::int64_t predecessor = is_old_enough ? users.front() : CausalPredecessors::kNone;
  users.push_back(seq);
  return predecessor;
}

}  // namespace verbatim
