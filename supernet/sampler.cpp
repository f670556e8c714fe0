#include "supernet/sampler.h"

#include "base/check.h"
#include "supernet/fair_sampler.h"
#include "supernet/list_sampler.h"
#include "supernet/reorder_sampler.h"
#include "supernet/search_space.h"

namespace verbatim {
namespace {

class UniformSampler : public Sampler {
 public:
  UniformSampler(std::uint64_t seed, ChoiceSpace space) : seed_(seed), space_(std::move(space)) {}

  Choices Draw(std::int64_t seq) const override {
    return DrawUniformChoices(
        space_,
        {.seed = seed_, .purpose = RandomPurpose::kSampler, .c = static_cast<std::uint32_t>(seq)});
  }

 private:
  std::uint64_t seed_;
  ChoiceSpace space_;
};

Result<std::unique_ptr<Sampler>> Make(const SamplerSpec& sampler, const Spec& spec,
                                      const ChoiceSpace& space,
                                      const std::filesystem::path& spec_folder) {
  switch (sampler.kind) {
    case SamplerKind::kUniform:
      return std::make_unique<UniformSampler>(spec.seed, space);
    case SamplerKind::kFair:
      return std::make_unique<FairSampler>(sampler, spec.seed, space);
    case SamplerKind::kList: {
      ASSIGN_OR_RETURN(auto choices, ReadListedChoices(spec, spec_folder));
      return std::make_unique<ListSampler>(std::move(choices), space.blocks());
    }
    case SamplerKind::kReorder: {
      ASSIGN_OR_RETURN(auto inner, Make(sampler.of.at(0), spec, space, spec_folder));
      return std::make_unique<ReorderSampler>(sampler, std::move(inner), spec.training.subnets,
                                              space);
    }
  }
  VERBATIM_CHECK(false, "sampler {}", static_cast<int>(sampler.kind));
}

}  // namespace

ChoiceSpace::ChoiceSpace(const SearchSpace& space)
    : versioned(static_cast<std::size_t>(space.blocks())) {
  for (const Layer& layer : space.layers()) {
    const bool is_block = layer.position > 0 && layer.position <= space.blocks();
    if (!is_block) continue;
    versioned[static_cast<std::size_t>(layer.position) - 1].push_back(layer.IsVersioned());
  }
}

Result<std::unique_ptr<Sampler>> MakeSampler(const Spec& spec, const ChoiceSpace& space,
                                             const std::filesystem::path& spec_folder) {
  return Make(spec.sampler, spec, space, spec_folder);
}

Choices DrawUniformChoices(const ChoiceSpace& space, const RandomKey& key) {
  KeyedRandom random(key);
  Choices choices(space.blocks());
  for (std::size_t block = 0; block < space.blocks(); ++block) {
    choices[block] = static_cast<std::uint16_t>(random.Below(space.candidates(block)));
  }
  return choices;
}

Choices SequentialSampler::Draw(std::int64_t seq) const {
  VERBATIM_CHECK(seq >= 0, "seq {}", seq);
  const std::lock_guard lock(mutex_);
  if (drawn_ < 0 || seq < drawn_ - static_cast<std::int64_t>(kept_.size())) {
    Restart();
    kept_.clear();
    drawn_ = 0;
  }
  for (; drawn_ <= seq; ++drawn_) {
    if (kept_.size() == kKept) kept_.pop_front();
    kept_.push_back(Next());
  }
  return kept_[kept_.size() - static_cast<std::size_t>(drawn_ - seq)];
}

}  // namespace verbatim
