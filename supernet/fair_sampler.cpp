#include "supernet/fair_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace verbatim {

FairSampler::FairSampler(const SamplerSpec& sampler, std::uint64_t seed, const ChoiceSpace& space)
    : seed_(seed) {
  for (std::size_t block = 0; block < space.blocks(); ++block) {
    const std::uint32_t candidates = space.candidates(block);
    const std::int64_t distance = sampler.reuse_distance.value_or(candidates / 2);
    VERBATIM_CHECK(distance >= 0 && distance <= candidates, "reuse distance {} of {} candidates",
                   distance, candidates);
    blocks_.push_back({.reach = candidates + 1 - static_cast<std::uint32_t>(distance),
                       .order = Choices(candidates),
                       .random = Random(block, 0)});
  }
}

KeyedRandom FairSampler::Random(std::size_t block, std::int64_t round) const {
  return KeyedRandom({.seed = seed_,
                      .purpose = RandomPurpose::kFairRound,
                      .b = static_cast<std::uint32_t>(block),
                      .c = static_cast<std::uint32_t>(round)});
}

void FairSampler::Restart() const {
  next_ = 0;
  for (Block& block : blocks_) {
    std::iota(block.order.begin(), block.order.end(), std::uint16_t{0});
  }
}

std::uint16_t FairSampler::Choose(std::size_t number) const {
  Block& block = blocks_[number];
  const auto candidates = static_cast<std::int64_t>(block.order.size());
  const std::int64_t round = next_ / candidates;
  const auto place = static_cast<std::uint32_t>(next_ % candidates);
  if (place == 0) block.random = Random(number, round);
  const std::uint32_t left = static_cast<std::uint32_t>(candidates) - place;
  const std::uint32_t reach = round == 0 ? left : std::min(left, block.reach);
  std::swap(block.order[place], block.order[place + block.random.Below(reach)]);
  return block.order[place];
}

Choices FairSampler::Next() const {
  Choices choices(blocks_.size());
  for (std::size_t block = 0; block < choices.size(); ++block) choices[block] = Choose(block);
  ++next_;
  return choices;
}

}  // namespace verbatim
