#include "supernet/reorder_sampler.h"

#include <utility>

#include "base/check.h"

namespace verbatim {

ReorderSampler::ReorderSampler(const SamplerSpec& sampler, std::unique_ptr<Sampler> inner,
                               std::int64_t subnets, const ChoiceSpace& space)
    : window_(sampler.window),
      neighbours_(sampler.neighbours),
      inner_(std::move(inner)),
      subnets_(subnets),
      space_(space) {
  VERBATIM_CHECK(window_ >= 1 && neighbours_ >= 1, "window {}, {} neighbours", window_,
                 neighbours_);
}

void ReorderSampler::Restart() const {
  taken_ = 0;
  next_ = 0;
  pending_.clear();
  neighbourhood_.clear();
  weight_.clear();
  for (const auto& block : space_.versioned) weight_.emplace_back(block.size(), 0);
}

void ReorderSampler::Fill() const {
  while (std::cmp_less(pending_.size(), window_) && taken_ < subnets_) {
    pending_.push_back({taken_, inner_->Draw(taken_)});
    ++taken_;
  }
}

std::int64_t ReorderSampler::Shared(const Choices& choices) const {
  std::int64_t shared = 0;
  for (std::size_t block = 0; block < choices.size(); ++block) {
    shared += weight_[block][choices[block]];
  }
  return shared;
}

std::size_t ReorderSampler::Best() const {
  std::size_t best = 0;
  // Places differ, so that at most one draw is due at a time.
  if (next_ == pending_[0].place + 4 * window_) return best;
  std::int64_t least = Shared(pending_[0].choices);
  for (std::size_t i = 1; i < pending_.size() && least > 0; ++i) {
    const std::int64_t shared = Shared(pending_[i].choices);
    if (shared < least) {
      least = shared;
      best = i;
    }
  }
  return best;
}

/// A share at distance k weighs neighbours + 1 - k: one less with every subnet that follows.
void ReorderSampler::Follow(const Choices& choices) const {
  const auto blocks = static_cast<std::int64_t>(choices.size());
  const auto add = [&](const Choices& to, std::int64_t amount) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::uint16_t candidate = to[block];
      if (!space_.versioned[block][candidate]) continue;
      weight_[block][candidate] += amount * (blocks - block);
    }
  };
  for (const Choices& neighbour : neighbourhood_) add(neighbour, -1);
  add(choices, neighbours_);
  neighbourhood_.push_front(choices);
  if (std::cmp_greater(neighbourhood_.size(), neighbours_)) neighbourhood_.pop_back();
}

Choices ReorderSampler::Next() const {
  VERBATIM_CHECK(next_ < subnets_, "subnet {} of {}", next_, subnets_);
  Fill();
  const auto best = pending_.begin() + static_cast<std::ptrdiff_t>(Best());
  Choices choices = std::move(best->choices);
  pending_.erase(best);
  Follow(choices);
  ++next_;
  return choices;
}

}  // namespace verbatim
