#include "schedule/simulate/causal_bound.h"

#include <algorithm>

namespace verbatim {

CausalBound::CausalBound(const SearchSpace& space, const CostTable& costs,
                         std::int32_t microbatches, double last_microbatch)
    : space_(space),
      costs_(costs),
      batch_(microbatches - 1 + last_microbatch),
      last_(last_microbatch),
      versions_(space.layers().size()),
      done_(static_cast<std::size_t>(microbatches)),
      begun_(static_cast<std::size_t>(space.positions())) {}

void CausalBound::Add(std::int64_t seq, std::span<const std::int32_t> layers,
                      std::span<const CausalPredecessors> predecessors) {
  std::fill(done_.begin(), done_.end(), 0.0);
  ForwardThrough(layers, predecessors);
  BackwardThrough(seq, layers, predecessors);
}

void CausalBound::Pass(double begin, double duration) {
  for (double& done : done_) {
    begin = std::max(begin, done) + duration * (&done == &done_.back() ? last_ : 1.0);
    done = begin;
  }
}

double CausalBound::WrittenAt(int layer, std::int64_t seq) const {
  for (const Version& version : versions_[layer]) {
    if (version.seq == seq) return version.written;
  }
  return 0.0;
}

void CausalBound::ForwardThrough(std::span<const std::int32_t> layers,
                                 std::span<const CausalPredecessors> predecessors) {
  for (std::size_t position = 0; position < layers.size(); ++position) {
    const int layer = layers[position];
    begun_[position] = std::max(done_.front(), WrittenAt(layer, predecessors[position].read));
    Pass(begun_[position], costs_.layers[layer].forward);
  }
}

void CausalBound::BackwardThrough(std::int64_t seq, std::span<const std::int32_t> layers,
                                  std::span<const CausalPredecessors> predecessors) {
  for (std::size_t position = layers.size(); position-- > 0;) {
    const LayerCost& cost = costs_.layers[layers[position]];
    Pass(done_.front(), cost.backward);
    // The layer has done both passes of the whole batch, one micro-batch at a time.
    const double serial = begun_[position] + batch_ * (cost.forward + cost.backward);
    done_.back() = std::max(done_.back(), serial);
    Update(seq, layers[position], predecessors[position], done_.back());
  }
}

void CausalBound::Update(std::int64_t seq, int layer, const CausalPredecessors& predecessors,
                         double ready) {
  length_ = std::max(length_, ready);
  if (!space_.layer(layer).IsVersioned()) return;
  std::deque<Version>& versions = versions_[layer];
  const double base = versions.empty() ? 0.0 : versions.back().written;
  versions.push_back({seq, std::max(ready, base) + costs_.layers[layer].update});
  // No later subnet reads an older version than this one did.
  while (versions.front().seq < predecessors.read) versions.pop_front();
  if (space_.layer(layer).delay == 0) versions.erase(versions.begin(), versions.end() - 1);
  length_ = std::max(length_, versions.back().written);
}

}  // namespace verbatim
