// A fault goes where it can show, by a draw that depends on spec and seed alone; what cannot show
// is refused, with the reason and with a subnet that could.
#include "trainer/fault_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

/// Plans for a spec, on the shape of the shipped digits.
class Setting {
 public:
  explicit Setting(const Spec& spec)
      : spec_(spec),
        space_(SearchSpace::Build(spec_, ActivationShape{1, 8, 8}, 10).value()),
        sampler_(MakeSampler(spec_, space_, VERBATIM_EXAMPLES).value()) {}

  Result<FaultPlan> Plan(const std::string& fault, const std::string& policy = "causal",
                         bool on_cpu = true) const {
    return PlanFault(ParseFault(fault).value(), {spec_, space_, *sampler_, policy, on_cpu});
  }
  /// Layers of a subnet.
  std::vector<const Layer*> LayersOf(std::int64_t seq) const {
    std::vector<const Layer*> layers;
    for (int position = 0; position < space_.positions(); ++position) {
      layers.push_back(&space_.LayerAt(position, sampler_->Draw(seq)));
    }
    return layers;
  }

 private:
  Spec spec_;
  SearchSpace space_;
  std::unique_ptr<Sampler> sampler_;
};

Spec LongSpec(std::uint64_t seed) {
  Spec spec = SmallSpec();
  spec.seed = seed;
  spec.training.subnets = 60;
  spec.training.microbatches = 3;
  return spec;
}

TEST(FaultPlanTest, DrawsASubnetOfTheMiddleThirdAndALayerThatItUses) {
  for (const std::string_view name : FaultNames()) {
    if (name == "truncated-file") continue;
    std::set<std::int64_t> subnets;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Setting setting(LongSpec(seed));
      const FaultPlan plan = setting.Plan(std::string(name)).value();
      const std::int64_t seq = plan.place.seq.value();
      EXPECT_GE(seq, 20) << name;
      EXPECT_LT(seq, 40) << name;
      EXPECT_LT(plan.predecessor, seq);
      subnets.insert(seq);
      if (!plan.place.layer) continue;
      const auto layers = setting.LayersOf(seq);
      EXPECT_TRUE(std::any_of(layers.begin(), layers.end(), [&](const Layer* layer) {
        return layer->id == *plan.place.layer && layer->name == plan.place.layer_name;
      })) << name;
    }
    EXPECT_GT(subnets.size(), 2u) << name << " is drawn by the seed";
  }
}

TEST(FaultPlanTest, ThePredecessorIsTheLatestEarlierUserOfTheLayer) {
  const Setting setting(LongSpec(3));
  const FaultPlan plan = setting.Plan("stale-read@30").value();
  std::int64_t latest = -1;
  for (std::int64_t seq = 0; seq < 30; ++seq) {
    for (const Layer* layer : setting.LayersOf(seq)) {
      if (layer->id == *plan.place.layer) latest = seq;
    }
  }
  EXPECT_EQ(plan.predecessor, latest);
  EXPECT_EQ(plan.place.seq, 30);
  EXPECT_EQ(plan.place.phase, Phase::kForward);
}

TEST(FaultPlanTest, TextsNameThePlace) {
  FaultPlan plan{FaultKind::kStaleRead, {12, 17, "block3.1", Phase::kForward}, 9};
  EXPECT_EQ(ToString(plan), "stale-read@12 block3.1 forward");
  EXPECT_EQ(ToString(plan.place), "subnet 12, layer block3.1, forward");
  plan = {FaultKind::kSwappedSamples, {4, std::nullopt, "", std::nullopt}, -1};
  EXPECT_EQ(ToString(plan), "swapped-samples@4");
  EXPECT_EQ(ToString(plan.place), "subnet 4");
  plan = {FaultKind::kTruncatedFile, {}, -1};
  EXPECT_EQ(ToString(plan), "truncated-file");
  EXPECT_EQ(ToString(plan.place), "the middle of the file");
}

TEST(FaultPlanTest, WhatCannotShowIsRefusedWithTheReason) {
  Spec plain = LongSpec(1);
  plain.training.optimizer = OptimizerSpec{};
  plain.training.batch = 1;
  plain.training.microbatches = 1;
  plain.supernet.head.candidates[0].dropout = 0.0;
  Spec frozen_ends = LongSpec(1);  // so that the first subnet that shares a layer is not the second
  frozen_ends.supernet.stem.trainable = false;
  frozen_ends.supernet.head.trainable = false;
  Spec losses = LongSpec(1);
  losses.record_level = RecordLevel::kLosses;
  Spec still = LongSpec(1);
  still.training.lr = LrSpec{};
  struct Case {
    Spec spec;
    const char* fault;
    const char* message;
    const char* hint;
  };
  const Case cases[] = {
      {plain, "stale-optimizer", "keeps no state", "momentum"},
      {plain, "swapped-samples", "one sample per batch", "training.batch"},
      {plain, "gradient-order", "training.microbatches 1", "3 or more"},
      {plain, "dropout-key", "no subnet of this run could show it", ""},
      {plain, "dropout-key@3", "no subnet of this run could show it", ""},
      {still, "stale-read", "uses no layer that an earlier one has changed", ""},
      {LongSpec(1), "stale-read@0", "subnet 0 uses no layer that an earlier one", "stale-read@1"},
      {LongSpec(1), "dropped-dependency@0", "subnet 0 uses no layer", "dropped-dependency@1"},
      {frozen_ends, "stale-optimizer@0", "subnet 0 uses no layer", "subnet"},
      {LongSpec(1), "bit-flip@60", "the run's subnets are 0 to 59", ""},
      {losses, "bit-flip", "at level losses has no digests", "--record weights"},
      {losses, "rewritten-row", "at level losses has no digests", "--record weights"},
  };
  for (const Case& c : cases) {
    const auto plan = Setting(c.spec).Plan(c.fault);
    ASSERT_FALSE(plan.has_value()) << c.fault;
    EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
    EXPECT_NE(plan.error().message.find(c.message), std::string::npos) << plan.error().message;
    EXPECT_NE(plan.error().hint.find(c.hint), std::string::npos) << plan.error().hint;
  }
  EXPECT_TRUE(Setting(losses).Plan("stale-read").has_value());
  EXPECT_FALSE(Setting(plain).Plan("stale-read", "asynchronous").has_value());
  EXPECT_FALSE(Setting(plain).Plan("thread-count", "causal", /*on_cpu=*/false).has_value());
}

}  // namespace
}  // namespace verbatim
