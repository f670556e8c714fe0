#include <cmath>

#include "base/check.h"
#include "fuzz/target.h"
#include "supernet/costs.h"
#include "supernet/sampler.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim::fuzz {
namespace {

// What a spec says of itself is what it says when read again.
void CheckRoundTrip(const Spec& spec) {
  const std::string text = SpecToJson(spec);
  const auto again = ParseSpec(text, "written");
  VERBATIM_CHECK(again.has_value(), "{}", again.error().message);
  VERBATIM_CHECK(SpecToJson(*again) == text, "{}", text);
}

void UseSpace(const Spec& spec, const SearchSpace& space) {
  for (const LayerCost& cost : AnalyticCosts(space, spec).layers) {
    VERBATIM_CHECK(std::isfinite(cost.forward) && cost.activation_bytes >= 0, "a senseless cost");
  }
  // A window or a space of the largest size takes seconds, which is no finding.
  if (space.layers().size() > 1000 || spec.sampler.window > 1000) return;
  const auto sampler = MakeSampler(spec, space, "/nonexistent");
  if (!sampler) return;
  for (std::int64_t seq = 0; seq < 3 && seq < spec.training.subnets; ++seq) {
    (void)space.LayerAt(space.positions() - 2, (*sampler)->Draw(seq));
  }
}

}  // namespace

void RunSpec(std::string_view input) {
  const auto spec = ParseSpec(input, "input");
  if (!spec) return;
  CheckRoundTrip(*spec);
  for (const std::int64_t seq : {std::int64_t{0}, spec->training.subnets - 1}) {
    VERBATIM_CHECK(std::isfinite(LearningRate(spec->training, seq)), "at {}", seq);
  }
  const auto shape = ShapeOfSpec(spec->data);
  const auto space = SearchSpace::Build(*spec, shape.value_or(ActivationShape{3, 8, 8}), 10);
  if (space) UseSpace(*spec, *space);
}

}  // namespace verbatim::fuzz
