#include "verify/stream_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/keyed_random.h"
#include "supernet/spec_names.h"

namespace verbatim {
namespace {

std::string SourceText(const SamplerSpec& sampler, std::uint64_t seed) {
  if (sampler.kind == SamplerKind::kList) return fmt::format("{} lists", sampler.file);
  if (sampler.kind == SamplerKind::kReorder) {
    return fmt::format("sampler reorder makes of what {}", SourceText(sampler.of.at(0), seed));
  }
  return fmt::format("sampler {} draws with seed {}", NameOf(kSamplerNames, sampler.kind), seed);
}

}  // namespace

std::optional<Difference> CompareChoices(const LayerTable& table,
                                         std::span<const std::uint16_t> recorded,
                                         std::span<const std::uint16_t> expected) {
  const auto [at, other] =
      std::mismatch(recorded.begin(), recorded.end(), expected.begin(), expected.end());
  if (at == recorded.end() && other == expected.end()) return std::nullopt;
  Difference difference;
  difference.kind = DifferenceClass::kSpec;
  difference.what = "choices";
  if (at == recorded.end() || other == expected.end()) {
    difference.recorded = fmt::format("{} choices", recorded.size());
    difference.expected = fmt::format("{} choices", expected.size());
    return difference;
  }
  const auto position = static_cast<int>(at - recorded.begin()) + 1;
  difference.layer = table.FirstLayer(position) + *at;
  difference.layer_name = table.Name(*difference.layer);
  difference.recorded = difference.layer_name;
  difference.expected = table.Name(table.FirstLayer(position) + *other);
  return difference;
}

StreamCheck::StreamCheck(const RunInfo& run, const Spec& spec, const LayerTable& table)
    : spec_(spec),
      table_(table),
      space_(table.Choices()),
      source_(SourceText(spec.sampler, spec.seed)) {
  // Where the two differ, which is damage, subnets are recorded up to the number planned.
  Spec planned = spec;
  planned.training.subnets = run.subnets_planned;
  auto sampler = MakeSampler(planned, space_, run.spec_folder);
  if (sampler) {
    sampler_ = *std::move(sampler);
  } else {
    obstacle_ = sampler.error().message;
  }
}

std::optional<Difference> StreamCheck::CompareSubnet(std::int64_t seq,
                                                     std::span<const std::uint16_t> choices) {
  VERBATIM_CHECK(obstacle_.empty(), "{}", obstacle_);
  auto difference = CompareChoices(table_, choices, sampler_->Draw(seq));
  if (difference) {
    difference->seq = seq;
    difference->cause =
        fmt::format("the recorded choices of subnet {} are not what {}", seq, source_);
  }
  return difference;
}

std::optional<Difference> StreamCheck::CompareEvaluation(std::int64_t index,
                                                         std::span<const std::uint16_t> choices) {
  const RandomKey key{.seed = spec_.seed,
                      .purpose = RandomPurpose::kEvaluationSubnet,
                      .c = static_cast<std::uint32_t>(index)};
  auto difference = CompareChoices(table_, choices, DrawUniformChoices(space_, key));
  if (difference) {
    difference->after_last = true;
    difference->what = fmt::format("choices of evaluation {}", index);
    difference->cause = fmt::format(
        "the recorded choices of evaluation {} are not what seed {} draws", index, spec_.seed);
  }
  return difference;
}

}  // namespace verbatim
