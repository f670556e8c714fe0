// What the independent Python reference cannot see from outside: masks, residuals, frozen buffers.
#include "trainer/operators.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

constexpr RandomKey kKey{9, RandomPurpose::kDropout, 1, 2, 3};

TEST(DropoutMaskTest, IsAFunctionOfKeyAndElementAlone) {
  const at::Tensor small = DropoutMask(at::ones({2, 5}), 0.3, kKey);
  const at::Tensor large = DropoutMask(at::ones({4, 5}), 0.3, kKey);
  EXPECT_TRUE(at::equal(small, large.narrow(0, 0, 2)));
  RandomKey other = kKey;
  other.c = 4;
  EXPECT_FALSE(at::equal(large, DropoutMask(at::ones({4, 5}), 0.3, other)));
}

TEST(DropoutMaskTest, KeepsAboutTheShareAskedForAndScalesIt) {
  const at::Tensor mask = DropoutMask(at::ones({100, 100}), 0.25, kKey);
  const float scale = 1.0f / 0.75f;
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const float value = mask.const_data_ptr<float>()[i];
    ASSERT_TRUE(value == 0.0f || value == scale) << value;
    kept += value == scale;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 10000, 0.75, 0.02);
}

TEST(DropoutMaskTest, FollowsTheWordsOfItsStream) {
  const at::Tensor mask = DropoutMask(at::ones({7}), 0.5, kKey);
  KeyedRandom words(kKey);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(mask.const_data_ptr<float>()[i], words.NextWord() < 0x80000000u ? 0.0f : 2.0f);
  }
}

TEST(ApplyLayerTest, ResidualAddsTheInputAndSkipStaysTheIdentity) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  const at::Tensor x = at::full({2, 4, 8, 8}, 0.5f);
  for (const Layer& layer : experiment.space.layers()) {
    if (layer.position != 1) continue;
    const LayerState& state = experiment.layers[layer.id];
    const OperatorContext context{.parameters = state.parameters};
    Layer plain = layer;
    plain.residual = false;
    const at::Tensor y = ApplyLayer(layer, x, context);
    const at::Tensor without = ApplyLayer(plain, x, context);
    const bool is_skip = layer.op.kind == OperatorKind::kSkip;
    EXPECT_TRUE(at::equal(y, is_skip ? x : without.add(x))) << layer.name;
  }
}

TEST(ApplyLayerTest, RunningStatisticsAreWrittenOnlyWhereTheyAreGiven) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  const Layer& stem = experiment.space.layers().front();
  const LayerState& state = experiment.layers.front();
  const at::Tensor x = experiment.dataset->HeldOutBatch(0, 8, at::kCPU).inputs;
  const at::Tensor before = state.buffers[0].clone();
  ApplyLayer(stem, x, OperatorContext{.parameters = state.parameters});
  EXPECT_TRUE(at::equal(state.buffers[0], before));
  ApplyLayer(stem, x, OperatorContext{.parameters = state.parameters, .buffers = state.buffers});
  EXPECT_FALSE(at::equal(state.buffers[0], before));
}

TEST(ApplyLayerTest, OutputShapesAreTheSearchSpaces) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  for (const Layer& layer : experiment.space.layers()) {
    const at::Tensor x = at::ones({3, layer.input.channels, layer.input.height, layer.input.width});
    const at::Tensor y =
        ApplyLayer(layer, x, OperatorContext{.parameters = experiment.layers[layer.id].parameters});
    EXPECT_EQ(y.numel(), 3 * layer.output.Elements()) << layer.name;
    EXPECT_EQ(y.size(1), layer.output.channels) << layer.name;
  }
}

}  // namespace
}  // namespace verbatim
