// Evaluation looks at the shared weights and leaves them alone.
#include "trainer/evaluation.h"

#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

TEST(EvaluationTest, IsRepeatableAndChangesNothing) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainedRows(experiment, SequentialOptions());
  const auto layers = DescribeLayers(experiment);
  std::int64_t done = 0;
  const auto rows = EvaluateSubnets(experiment, [&](std::int64_t count) {
    done = count;
    return true;
  });
  EXPECT_EQ(done, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].total, 359);
  EXPECT_NE(rows[0].choices, rows[1].choices);
  EXPECT_EQ(DescribeLayers(experiment), layers);
  EXPECT_EQ(EvaluateSubnets(experiment, {}), rows);
  EXPECT_EQ(EvaluateSubnets(experiment, [](std::int64_t) { return false; }).size(), 1u);
}

TEST(EvaluationTest, ASubnetThatIsTrainedAloneLearnsTheDigits) {
  Spec spec = SmallSpec();
  spec.training.subnets = 100;
  spec.training.batch = 64;
  spec.training.lr.base = 0.1;
  spec.evaluation.subnets = 1;
  spec.supernet.stem.channels = 16;
  spec.supernet.blocks[1].channels = 24;
  spec.supernet.head.candidates[0].dropout = 0.0;
  for (BlockSpec& block : spec.supernet.blocks) block.candidates.resize(1);
  Experiment experiment = MakeExperiment(spec);
  EXPECT_LT(EvaluateSubnets(experiment, {})[0].correct, 359 / 2);
  TrainedRows(experiment, SequentialOptions());
  EXPECT_GT(EvaluateSubnets(experiment, {})[0].correct, 359 * 3 / 4);
}

}  // namespace
}  // namespace verbatim
