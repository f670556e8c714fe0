// The promise: every layout leaves the bits of the sequential reference. Records are made by the
// real recorder and compared by content, with random delays between tasks.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/trainer/small_run.h"
#include "trainer/stage_probe.h"

namespace verbatim {
namespace {

/// Keeps a stage busy for 0 … 400 µs before some tasks, by a draw of its own per stage. It spins:
/// only the order of events between stages matters, never how long anything takes.
class RandomDelays : public StageProbe {
 public:
  explicit RandomDelays(std::uint32_t seed) : seed_(seed) {}

  void BeforeTask(int stage, const Task& task) override {
    const auto microbatch = static_cast<std::uint32_t>(task.microbatch);
    std::seed_seq words{seed_, static_cast<std::uint32_t>(stage),
                        static_cast<std::uint32_t>(task.seq), microbatch,
                        static_cast<std::uint32_t>(task.kind)};
    std::mt19937 random(words);
    if (random() % 3 != 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 400);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

 private:
  std::uint32_t seed_;
};

struct Workload {
  const char* name;
  std::int64_t batch;
  std::int64_t microbatches;
};

class EqualityTest : public ::testing::TestWithParam<Workload> {};

TEST_P(EqualityTest, EveryStageCountLeavesTheSequentialRecord) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Spec spec = SmallSpec();
    spec.seed = seed;
    spec.training.batch = GetParam().batch;
    spec.training.microbatches = GetParam().microbatches;
    const std::string reference = RecordedContent(spec, SequentialOptions());
    for (const std::int64_t stages : {1, 2, 3, 5, 8}) {
      TrainingOptions options;
      options.stages = stages;
      RandomDelays delays(static_cast<std::uint32_t>(seed * 100 + stages));
      options.probe = &delays;
      EXPECT_EQ(RecordedContent(spec, options), reference)
          << "seed " << seed << ", " << stages << " stages";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Microbatches, EqualityTest,
                         ::testing::Values(Workload{"One", 12, 1}, Workload{"Two", 12, 2},
                                           Workload{"Four", 12, 4}, Workload{"Uneven", 13, 3}),
                         [](const auto& workload) { return workload.param.name; });

TEST(InFlightTest, TheNumberOfSubnetsInFlightChangesNothing) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  const std::string reference = RecordedContent(spec, SequentialOptions());
  for (const std::int64_t in_flight : {1, 2, 4, 16}) {
    TrainingOptions options;
    options.stages = 3;
    options.in_flight = in_flight;
    RandomDelays delays(static_cast<std::uint32_t>(in_flight));
    options.probe = &delays;
    EXPECT_EQ(RecordedContent(spec, options), reference) << in_flight << " in flight";
  }
}

TEST(LevelTest, FullRecordsAreEqualToo) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 3;
  TrainingOptions sequential = SequentialOptions();
  sequential.record_level = RecordLevel::kFull;
  TrainingOptions pipelined;
  pipelined.stages = 4;
  pipelined.record_level = RecordLevel::kFull;
  EXPECT_EQ(RecordedContent(spec, pipelined), RecordedContent(spec, sequential));
}

TEST(OptimizerTest, EveryOptimizerIsEqualAcrossStages) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    Spec spec = SmallSpec();
    spec.training.optimizer = OptimizerSpec{};
    spec.training.optimizer.kind = kind;
    spec.training.lr.base = 0.001;
    TrainingOptions options;
    options.stages = 4;
    RandomDelays delays(7);
    options.probe = &delays;
    EXPECT_EQ(RecordedContent(spec, options), RecordedContent(spec, SequentialOptions()))
        << "optimizer " << static_cast<int>(kind);
  }
}

TEST(ContentTest, AnotherSeedLeavesAnotherRecord) {
  Spec spec = SmallSpec();
  const std::string one = RecordedContent(spec, SequentialOptions());
  spec.seed = 2;
  EXPECT_NE(RecordedContent(spec, SequentialOptions()), one);
}

TEST(FrozenTest, FrozenStemAndHeadAreEqualAndNeverWritten) {
  Spec spec = SmallSpec();
  spec.supernet.stem.trainable = false;
  spec.supernet.head.trainable = false;
  TrainingOptions options;
  options.stages = 8;  // the stem and the head each have a stage of their own
  options.in_flight = 8;
  RandomDelays delays(3);
  options.probe = &delays;
  EXPECT_EQ(RecordedContent(spec, options), RecordedContent(spec, SequentialOptions()));

  Experiment experiment = MakeExperiment(spec);
  const auto before = DescribeLayers(experiment);
  TrainedRows(experiment, options);
  const auto after = DescribeLayers(experiment);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_EQ(after.back(), before.back());
}

}  // namespace
}  // namespace verbatim
