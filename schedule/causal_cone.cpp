#include "schedule/causal_cone.h"

#include <algorithm>

#include "base/check.h"

namespace verbatim {

CausalHistory::CausalHistory(std::int32_t layers) : layers_(layers) {}

void CausalHistory::Add(std::span<const std::int32_t> layers) {
  for (const std::int32_t layer : layers) {
    VERBATIM_CHECK(layer >= 0 && layer < layers_, "layer {} of {}", layer, layers_);
  }
  uses_.insert(uses_.end(), layers.begin(), layers.end());
  first_use_.push_back(uses_.size());
}

std::span<const std::int32_t> CausalHistory::Uses(std::int64_t seq) const {
  const auto at = static_cast<std::size_t>(seq);
  return std::span(uses_).subspan(first_use_[at], first_use_[at + 1] - first_use_[at]);
}

std::int64_t CausalHistory::LastWriter(std::int32_t layer, std::int64_t seq) const {
  for (seq = std::min(seq, subnets() - 1); seq >= 0; --seq) {
    const auto uses = Uses(seq);
    if (std::find(uses.begin(), uses.end(), layer) != uses.end()) return seq;
  }
  return -1;
}

std::vector<std::int64_t> CausalHistory::Cone(std::span<const std::int64_t> targets) const {
  std::vector<std::int64_t> wanted(targets.begin(), targets.end());
  std::sort(wanted.begin(), wanted.end());
  VERBATIM_CHECK(wanted.empty() || (wanted.front() >= 0 && wanted.back() < subnets()), "{} subnets",
                 subnets());
  // Backwards, a subnet is in the cone as soon as it writes a layer that a later member reads.
  std::vector<bool> is_read(static_cast<std::size_t>(layers_), false);
  std::vector<std::int64_t> cone;
  for (std::int64_t seq = wanted.empty() ? -1 : wanted.back(); seq >= 0; --seq) {
    const auto uses = Uses(seq);
    const bool is_target = !wanted.empty() && wanted.back() == seq;
    while (!wanted.empty() && wanted.back() == seq) wanted.pop_back();
    const bool is_member = is_target || std::any_of(uses.begin(), uses.end(), [&](auto layer) {
                             return is_read[static_cast<std::size_t>(layer)];
                           });
    if (!is_member) continue;
    cone.push_back(seq);
    for (const std::int32_t layer : uses) is_read[static_cast<std::size_t>(layer)] = true;
  }
  std::reverse(cone.begin(), cone.end());
  return cone;
}

}  // namespace verbatim
