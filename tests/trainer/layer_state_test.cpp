// Initial weights by key, updates against their textbook formulas, digests that see everything.
#include "trainer/layer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

class LayerStateTest : public ::testing::Test {
 protected:
  LayerStateTest() : experiment_(MakeExperiment(SmallSpec())) {}

  const Layer& stem() const { return experiment_.space.layers().front(); }
  LayerState Initial(const OptimizerSpec& optimizer, std::uint64_t seed = 1) const {
    return InitialLayerState(stem(), optimizer, seed, at::kCPU);
  }
  static std::vector<at::Tensor> Gradients(const LayerState& state, float value) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : state.parameters) {
      gradients.push_back(at::full_like(parameter.detach(), value));
    }
    return gradients;
  }

  Experiment experiment_;
};

TEST_F(LayerStateTest, InitialWeightsDependOnSeedAndLayerOnly) {
  const OptimizerSpec optimizer;
  const Digest digest = WeightsDigest(stem(), Initial(optimizer));
  EXPECT_EQ(WeightsDigest(stem(), Initial(optimizer)), digest);
  EXPECT_NE(WeightsDigest(stem(), Initial(optimizer, 2)), digest);
  Layer other = stem();
  other.id = 1;
  EXPECT_NE(WeightsDigest(other, InitialLayerState(other, optimizer, 1, at::kCPU)), digest);
}

TEST_F(LayerStateTest, InitialWeightsAreTheKeyedWordsWithinTheKaimingBound) {
  const LayerState state = Initial({});
  const at::Tensor weight = state.parameters[0].detach();
  const auto bound = static_cast<float>(std::sqrt(6.0 / 9.0));  // one channel, 3 × 3
  KeyedRandom words(RandomKey{1, RandomPurpose::kInitialWeights, 0, 0});
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    const float expected = (2.0f * UniformFloat(words.NextWord()) - 1.0f) * bound;
    ASSERT_EQ(weight.const_data_ptr<float>()[i], expected) << "element " << i;
    ASSERT_LE(std::abs(expected), bound);
  }
  EXPECT_TRUE(state.parameters[1].eq(1).all().item<bool>());  // batch norm's weight
  EXPECT_TRUE(state.parameters[2].eq(0).all().item<bool>());  // and bias
}

TEST_F(LayerStateTest, SgdWithMomentumFollowsItsFormula) {
  OptimizerSpec optimizer;
  optimizer.momentum = 0.9;
  optimizer.weight_decay = 0.1;
  LayerState state = Initial(optimizer);
  at::Tensor expected = state.parameters[0].detach().clone();
  at::Tensor buffer;
  for (int step = 0; step < 3; ++step) {
    ApplyUpdate(optimizer, 0.5, Gradients(state, 0.25f), state);
    const at::Tensor gradient = expected * 0.1 + 0.25;
    buffer = step == 0 ? gradient : buffer * 0.9 + gradient;
    expected = expected - buffer * 0.5;
    EXPECT_TRUE(at::allclose(state.parameters[0].detach(), expected, 1e-5, 1e-6)) << step;
  }
  EXPECT_EQ(state.updates, 3);
  EXPECT_EQ(state.version, -1);
}

TEST_F(LayerStateTest, AdamMovesByTheLearningRateAtItsFirstStep) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    OptimizerSpec optimizer;
    optimizer.kind = kind;
    LayerState state = Initial(optimizer);
    const at::Tensor before = state.parameters[0].detach().clone();
    ApplyUpdate(optimizer, 0.01, Gradients(state, 3.0f), state);
    EXPECT_TRUE(at::allclose(state.parameters[0].detach(), before - 0.01, 1e-4, 1e-5));
  }
}

TEST_F(LayerStateTest, AdamWDecaysTheWeightsApartFromTheGradient) {
  OptimizerSpec optimizer;
  optimizer.kind = OptimizerKind::kAdamW;
  optimizer.weight_decay = 0.5;
  LayerState state = Initial(optimizer);
  const at::Tensor before = state.parameters[0].detach().clone();
  ApplyUpdate(optimizer, 0.1, Gradients(state, 0.0f), state);
  EXPECT_TRUE(at::allclose(state.parameters[0].detach(), before * 0.95, 1e-5, 1e-6));
}

TEST_F(LayerStateTest, DigestsSeeEveryElementBufferAndStep) {
  OptimizerSpec optimizer;
  optimizer.momentum = 0.9;
  LayerState state = Initial(optimizer);
  const Digest weights = WeightsDigest(stem(), state);
  const Digest optimizer_state = OptimizerStateDigest(stem(), optimizer, state);
  state.buffers[1].mutable_data_ptr<float>()[2] += 1e-6f;
  EXPECT_NE(WeightsDigest(stem(), state), weights);
  EXPECT_EQ(OptimizerStateDigest(stem(), optimizer, state), optimizer_state);
  state.updates = 1;
  const Digest stepped = OptimizerStateDigest(stem(), optimizer, state);
  EXPECT_NE(stepped, optimizer_state);
  state.optimizer_state[0].mutable_data_ptr<float>()[0] = -0.0f;  // a sign bit alone
  EXPECT_NE(OptimizerStateDigest(stem(), optimizer, state), stepped);
}

}  // namespace
}  // namespace verbatim
