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
  const auto rows = EvaluateSubnets(experiment, [&](std::int64_t count) { done = count; });
  EXPECT_EQ(done, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].total, 359);
  EXPECT_NE(rows[0].choices, rows[1].choices);
  EXPECT_EQ(DescribeLayers(experiment), layers);
  EXPECT_EQ(EvaluateSubnets(experiment, {}), rows);
}

TEST(EvaluationTest, TrainingHelps) {
  Spec spec = SmallSpec();
  spec.training.subnets = 200;
  spec.training.batch = 64;
  spec.training.lr.base = 0.2;
  spec.supernet.head.candidates[0].dropout = 0.0;
  spec.evaluation.subnets = 4;
  Experiment experiment = MakeExperiment(spec);
  const auto correct = [&] {
    std::int64_t sum = 0;
    for (const EvaluationRow& row : EvaluateSubnets(experiment, {})) sum += row.correct;
    return sum;
  };
  const std::int64_t before = correct();
  TrainedRows(experiment, SequentialOptions());
  EXPECT_GT(correct(), before + 359);  // of 4 × 359
}

}  // namespace
}  // namespace verbatim
