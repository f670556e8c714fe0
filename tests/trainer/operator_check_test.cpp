#include "trainer/operator_check.h"

#include <ATen/ops/add.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

TEST(OperatorCheckTest, ThoseOfTheCpuGiveTheSameBitsAgain) {
  for (const Spec& spec : {SmallSpec(), SmallTextSpec()}) {
    const Experiment experiment = MakeExperiment(spec);
    const auto before = DescribeLayers(experiment);
    const Status checked = CheckOperators(experiment);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
    EXPECT_EQ(DescribeLayers(experiment), before);
  }
}

TEST(OperatorCheckTest, EachOperatorAndShapeIsAppliedOnce) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  std::map<std::string, int> applied;
  const Status checked = CheckOperators(
      experiment, [&](const Layer& layer, const at::Tensor& x, const OperatorContext& context) {
        ++applied[layer.name];
        return ApplyLayer(layer, x, context);
      });
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(applied["block0.1"], 2) << "two times to compare";
  EXPECT_EQ(applied["block1.1"], 0) << "as block0.1";
  EXPECT_EQ(applied["block3.1"], 2) << "its stride is another one";
}

TEST(OperatorCheckTest, AnOperatorThatLibTorchRefusesIsNamed) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  const Status checked = CheckOperators(
      experiment, [](const Layer& layer, const at::Tensor& x, const OperatorContext& context) {
        TORCH_CHECK(layer.op.kind != OperatorKind::kMaxPool,
                    "max_pool_cuda does not have a deterministic implementation, but …");
        return ApplyLayer(layer, x, context);
      });
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(checked.error().message, HasSubstr("max_pool k3 (layer block4.1) has no determin"));
  EXPECT_THAT(checked.error().message, HasSubstr("max_pool_cuda does not have"));
}

TEST(OperatorCheckTest, AnOperatorThatLeavesOtherBitsIsNamed) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  float noise = 0.0f;
  const Status checked = CheckOperators(
      experiment, [&](const Layer& layer, const at::Tensor& x, const OperatorContext& context) {
        const at::Tensor y = ApplyLayer(layer, x, context);
        return layer.name == "block2.0" || layer.position == 4 ? at::add(y, noise += 1.0f) : y;
      });
  ASSERT_FALSE(checked.has_value());
  EXPECT_THAT(checked.error().message, HasSubstr("(layer block3.0)"));
  EXPECT_THAT(checked.error().message, HasSubstr("left other bits"));
}

TEST(OperatorCheckTest, OtherErrorsAreNotTakenForRefusals) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  const ApplyOneLayer fails = [](const Layer&, const at::Tensor&, const OperatorContext&) {
    TORCH_CHECK(false, "CUDA out of memory");
    return at::Tensor();
  };
  EXPECT_THROW(static_cast<void>(CheckOperators(experiment, fails)), c10::Error);
}

}  // namespace
}  // namespace verbatim
