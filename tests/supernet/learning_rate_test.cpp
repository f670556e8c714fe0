// Proves every schedule's values to the bit; the cosine's come from an independent computation.
#include <gtest/gtest.h>

#include "supernet/spec.h"

namespace verbatim {
namespace {

TrainingSpec Training(LrSpec lr, std::int64_t subnets) {
  TrainingSpec training;
  training.subnets = subnets;
  training.lr = lr;
  return training;
}

TEST(LearningRate, Constant) {
  const auto training = Training({.kind = LrKind::kConstant, .base = 0.1}, 100);
  EXPECT_EQ(LearningRate(training, 0), 0.1);
  EXPECT_EQ(LearningRate(training, 99), 0.1);
}

TEST(LearningRate, WarmsUpToTheBase) {
  for (const LrKind kind : {LrKind::kConstant, LrKind::kStep, LrKind::kCosine}) {
    const auto training = Training({.kind = kind, .base = 0.1, .warmup = 7, .every = 1}, 100);
    EXPECT_EQ(LearningRate(training, 0), 0.1 / 7);
    EXPECT_EQ(LearningRate(training, 2), 0x1.5f15f15f15f17p-5);
    EXPECT_EQ(LearningRate(training, 6), 0.1);
    EXPECT_EQ(LearningRate(training, 7), 0.1);
  }
}

TEST(LearningRate, WarmupMayBeTheWholeRun) {
  const auto training = Training({.kind = LrKind::kCosine, .base = 1.0, .warmup = 4}, 4);
  EXPECT_EQ(LearningRate(training, 3), 1.0);
}

TEST(LearningRate, StepMultipliesOneAfterAnother) {
  const auto training =
      Training({.kind = LrKind::kStep, .base = 0.1, .warmup = 4, .every = 10, .gamma = 0.3}, 100);
  EXPECT_EQ(LearningRate(training, 13), 0.1);
  EXPECT_EQ(LearningRate(training, 14), 0.1 * 0.3);
  EXPECT_EQ(LearningRate(training, 34), 0x1.61e4f765fd8adp-9);
  EXPECT_NE(LearningRate(training, 34), 0.0027);
}

TEST(LearningRate, StepMayBeTakenAtEverySubnet) {
  const std::int64_t many = 4000000000;
  EXPECT_EQ(
      LearningRate(Training({.kind = LrKind::kStep, .base = 0.1, .every = 1, .gamma = 0.5}, many),
                   many - 1),
      0.0);
  EXPECT_EQ(
      LearningRate(Training({.kind = LrKind::kStep, .base = 0.1, .every = 1, .gamma = 1.0}, many),
                   many - 1),
      0.1);
}

TEST(LearningRate, CosineFallsToTheFinalRate) {
  const auto training =
      Training({.kind = LrKind::kCosine, .base = 0.4, .warmup = 4, .final = 0.01}, 100);
  EXPECT_EQ(LearningRate(training, 4), 0.4);
  EXPECT_EQ(LearningRate(training, 5), 0x1.997e3b11c3319p-2);
  EXPECT_EQ(LearningRate(training, 50), 0x1.bdf59ad327bf4p-3);
  EXPECT_EQ(LearningRate(training, 99), 0x1.4b19e575ae48fp-7);
}

}  // namespace
}  // namespace verbatim
