// How a run stops: on request, on a loss that is not finite, on an observer's error, on a throw.
#include "trainer/training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/small_run.h"
#include "trainer/stage_probe.h"

namespace verbatim {
namespace {

TEST(TrainingTest, AStopRequestLeavesAPrefixOfWholeSubnets) {
  Experiment experiment = MakeExperiment(SmallSpec());
  std::atomic<bool> stop = false;
  TrainingOptions options;
  options.stages = 3;
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished >= 5; };
  TrainingOutcome outcome;
  const auto rows = TrainedRows(experiment, options, &outcome);
  EXPECT_EQ(outcome.status, RunStatus::kInterrupted);
  EXPECT_GE(rows.size(), 5u);
  EXPECT_LT(rows.size(), 16u);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].seq, static_cast<int>(i));
  EXPECT_NE(outcome.detail.find("of 16 subnets"), std::string::npos) << outcome.detail;
}

TEST(TrainingTest, AStoppedRunIsAPrefixOfTheWholeRun) {
  Experiment whole = MakeExperiment(SmallSpec());
  const auto all = TrainedRows(whole, SequentialOptions());
  Experiment stopped = MakeExperiment(SmallSpec());
  std::atomic<bool> stop = false;
  TrainingOptions options;
  options.stages = 4;
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished >= 3; };
  const auto prefix = TrainedRows(stopped, options);
  ASSERT_GE(prefix.size(), 3u);
  ASSERT_LT(prefix.size(), all.size());
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    EXPECT_EQ(EncodeSubnetContent(prefix[i]), EncodeSubnetContent(all[i])) << "subnet " << i;
  }
}

TEST(TrainingTest, ALossThatIsNotFiniteStopsTheRunAndIsRecorded) {
  Spec spec = SmallSpec();
  spec.training.lr.base = 1e30;
  spec.training.lr.warmup = 0;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.stages = 2;
  TrainingOutcome outcome;
  const auto rows = TrainedRows(experiment, options, &outcome);
  EXPECT_EQ(outcome.status, RunStatus::kFailed);
  ASSERT_LT(rows.size(), 16u);
  const auto bad = std::find_if(rows.begin(), rows.end(), [](const SubnetRow& row) {
    return !std::isfinite(std::bit_cast<float>(row.loss_bits));
  });
  ASSERT_NE(bad, rows.end());
  EXPECT_NE(outcome.detail.find("subnet " + std::to_string(bad->seq)), std::string::npos)
      << outcome.detail;
}

TEST(TrainingTest, WithoutStopOnNanTheRunGoesOn) {
  Spec spec = SmallSpec();
  spec.training.lr.base = 1e30;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.stop_on_nan = false;
  TrainingOutcome outcome;
  EXPECT_EQ(TrainedRows(experiment, options, &outcome).size(), 16u);
  EXPECT_EQ(outcome.status, RunStatus::kComplete);
}

TEST(TrainingTest, AnObserversErrorStopsTheRunWithItsMessage) {
  Experiment experiment = MakeExperiment(SmallSpec());
  SubnetAssembler full_disk([](SubnetRow&& row) -> Status {
    if (row.seq < 3) return {};
    return Failed("the disk is full");
  });
  TrainingOptions options;
  options.stages = 3;
  options.observer = &full_disk;
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kFailed);
  EXPECT_EQ(outcome->detail, "the disk is full");
}

TEST(TrainingTest, AThrowInAStageStopsAllStages) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.stages = 4;
  class OutOfMemory : public StageProbe {
    void BeforeTask(int stage, const Task& task) override {
      if (stage == 2 && task.seq == 4) throw std::runtime_error("out of memory\nstack trace");
    }
  } probe;
  options.probe = &probe;
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kFailed);
  EXPECT_EQ(outcome->detail, "stage 2: out of memory");
}

TEST(TrainingTest, OptionsThatMakeNoSenseAreRefusedBeforeAnythingRuns) {
  Experiment experiment = MakeExperiment(SmallSpec());
  struct Case {
    const char* part;
    TrainingOptions options;
  };
  TrainingOptions stages, in_flight, threads, policy, sequential;
  stages.stages = 9;
  in_flight.in_flight = 0;
  threads.threads_per_stage = 0;
  policy.policy = "random";
  sequential.policy = "sequential";
  sequential.stages = 2;
  const Case cases[] = {{"--stages 9", stages},
                        {"--in-flight 0", in_flight},
                        {"--threads-per-stage 0", threads},
                        {"--policy random", policy},
                        {"--policy sequential", sequential}};
  for (const Case& c : cases) {
    const auto outcome = Train(experiment, c.options);
    ASSERT_FALSE(outcome.has_value()) << c.part;
    EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage);
    EXPECT_NE(outcome.error().message.find(c.part), std::string::npos) << outcome.error().message;
  }
}

TEST(TrainingTest, AsynchronousRunsReportTheVersionsThatTheyReallySaw) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.stages = 3;
  options.policy = "asynchronous";
  const auto rows = TrainedRows(experiment, options);
  ASSERT_EQ(rows.size(), 16u);
  // Every subnet uses the stem: causally, subnet j reads what subnet j - 1 wrote.
  std::int64_t stale = 0;
  for (const SubnetRow& row : rows) stale += row.accesses.front().read_seq != row.seq - 1;
  EXPECT_GT(stale, 0);
}

TEST(TrainingTest, AsynchronousRunsEndAlsoWhereDelayedLayersMove) {
  Spec spec = SmallSpec();
  spec.training.subnets = 48;
  for (BlockSpec& block : spec.supernet.blocks) block.delay = 2;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.stages = 4;
  options.in_flight = 8;
  options.policy = "asynchronous";
  EXPECT_EQ(TrainedRows(experiment, options).size(), 48u);
}

TEST(TrainingTest, LossesLevelKeepsVersionsAndLeavesDigestsOut) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.record_level = RecordLevel::kLosses;
  for (const SubnetRow& row : TrainedRows(experiment, options)) {
    for (const AccessRow& access : row.accesses) {
      EXPECT_FALSE(access.weights || access.optimizer_state || access.gradients);
      EXPECT_EQ(access.read_seq, access.base_seq);
    }
  }
}

}  // namespace
}  // namespace verbatim
