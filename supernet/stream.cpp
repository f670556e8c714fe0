#include "supernet/stream.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "supernet/list_sampler.h"

namespace verbatim {
namespace {

std::vector<std::uint32_t> CandidatesByBlock(const SearchSpace& space) {
  std::vector<std::uint32_t> candidates;
  for (int block = 0; block < space.blocks(); ++block) {
    candidates.push_back(static_cast<std::uint32_t>(space.candidates(block + 1)));
  }
  return candidates;
}

Choices DrawUniform(const std::vector<std::uint32_t>& candidates, const RandomKey& key) {
  KeyedRandom random(key);
  Choices choices;
  choices.reserve(candidates.size());
  for (const std::uint32_t count : candidates) {
    choices.push_back(static_cast<std::uint16_t>(random.Below(count)));
  }
  return choices;
}

class UniformSampler : public Sampler {
 public:
  UniformSampler(std::uint64_t seed, std::vector<std::uint32_t> candidates)
      : seed_(seed), candidates_(std::move(candidates)) {}

  Choices Draw(std::int64_t seq) const override {
    return DrawUniform(candidates_, RandomKey{.seed = seed_,
                                              .purpose = RandomPurpose::kSampler,
                                              .c = static_cast<std::uint32_t>(seq)});
  }

 private:
  std::uint64_t seed_;
  std::vector<std::uint32_t> candidates_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> MakeSampler(const Spec& spec, const SearchSpace& space,
                                             const std::filesystem::path& spec_folder) {
  if (spec.sampler.kind == SamplerKind::kUniform) {
    return std::make_unique<UniformSampler>(spec.seed, CandidatesByBlock(space));
  }
  ASSIGN_OR_RETURN(std::vector<std::uint16_t> choices, ReadListedChoices(spec, spec_folder));
  return std::make_unique<ListSampler>(std::move(choices),
                                       static_cast<std::size_t>(space.blocks()));
}

Choices DrawUniformChoices(const SearchSpace& space, const RandomKey& key) {
  return DrawUniform(CandidatesByBlock(space), key);
}

std::vector<std::uint32_t> DrawSamples(std::span<const std::uint32_t> pool, std::int64_t count,
                                       const RandomKey& key) {
  const auto wanted = static_cast<std::uint32_t>(count);
  const auto size = static_cast<std::uint32_t>(pool.size());
  VERBATIM_CHECK(count >= 0 && wanted == count && size == pool.size() && wanted <= size,
                 "{} of {} samples", count, pool.size());
  // A Fisher–Yates shuffle over places: those not named here still hold their own number. Place i
  // is never looked at again after step i, so that only place j need be kept.
  std::unordered_map<std::uint32_t, std::uint32_t> moved;
  moved.reserve(wanted);
  std::vector<std::uint32_t> samples(wanted);
  KeyedRandom random(key);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    const std::uint32_t j = i + random.Below(size - i);
    const auto at_i = moved.find(i);
    const std::uint32_t own = at_i == moved.end() ? i : at_i->second;
    const auto [at_j, untouched] = moved.try_emplace(j, j);
    samples[i] = pool[j == i ? own : at_j->second];
    at_j->second = own;
  }
  return samples;
}

RowRange MicrobatchRows(std::int64_t batch, std::int64_t microbatches, std::int64_t m) {
  const std::int64_t rows = (batch + microbatches - 1) / microbatches;
  return {.first = std::min(m * rows, batch), .last = std::min((m + 1) * rows, batch)};
}

}  // namespace verbatim
