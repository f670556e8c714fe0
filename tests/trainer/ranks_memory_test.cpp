// Ranks whose stages may hold some of the layers only: each has a home of its own, through which
// layers come and go. The promise is the same, and so are checkpoints.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/checkpoint_specs.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/ranks_run.h"

namespace verbatim {
namespace {

struct Layout {
  int ranks;
  std::int64_t stages;
  std::int64_t in_flight;
  const char* partition = "balanced";
};

const Layout kLayouts[] = {{1, 2, 8}, {2, 2, 4}, {2, 5, 16}, {3, 3, 8, "equal"}, {3, 6, 70}};

TrainingOptions OptionsOf(const Spec& spec, const Layout& layout, int budget) {
  TrainingOptions options;
  options.stages = layout.stages;
  options.in_flight = layout.in_flight;
  options.partition = layout.partition;
  options.device_memory = *LeastDeviceMemoryOf(MakeExperiment(spec), options) * budget;
  return options;
}

void ExpectWithin(const RanksRun& run, const TrainingOptions& options) {
  std::int64_t bytes_loaded = 0;  // some ranks have none but layers with a delay
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kComplete) << outcome.detail;
    ASSERT_TRUE(outcome.layers.has_value());
    bytes_loaded += outcome.layers->bytes_loaded;
    for (const std::int64_t peak : outcome.layers->peak_bytes) {
      EXPECT_LE(peak, *options.device_memory);
    }
  }
  EXPECT_GT(bytes_loaded, 0);
}

TEST(RanksMemoryTest, EveryBudgetLeavesTheSequentialRecord) {
  std::uint32_t seed = 0;
  for (const auto& [name, spec] : CheckpointSpecs(DelayedRanksSpec(4, 2))) {
    TrainingOptions sequential = SequentialOptions();
    sequential.record_level = RecordLevel::kFull;
    const RanksRun expected = TrainAlone(spec, sequential);
    for (const Layout& layout : kLayouts) {
      for (const int budget : {1, 2}) {
        if (budget > 1 && layout.ranks < 3) continue;
        TrainingOptions options = OptionsOf(spec, layout, budget);
        options.record_level = RecordLevel::kFull;
        SCOPED_TRACE(std::string(name) + ", ranks " + std::to_string(layout.ranks) + ", stages " +
                     std::to_string(layout.stages) + ", budget " + std::to_string(budget) +
                     ", seed " + std::to_string(++seed));
        const RanksRun run = TrainOnRanks(spec, layout.ranks, options, {.seed = seed});
        ExpectWithin(run, options);
        EXPECT_TRUE(ContentsOf(run.rows) == ContentsOf(expected.rows));
        EXPECT_TRUE(run.layers == expected.layers);
      }
    }
  }
}

TEST(RanksMemoryTest, LayersThatRankZeroHasLoadedReachAllRanks) {
  for (const Spec& spec : {SmallSpec(), DelayedRanksSpec(4, 2)}) {
    const RanksRun expected = TrainAlone(spec, SequentialOptions());
    const std::vector<std::string> contents = ContentsOf(expected.rows);
    for (const Layout& layout : kLayouts) {
      TrainingOptions options = OptionsOf(spec, layout, 1);
      options.first = 9;
      options.sends_layers = true;
      RanksSetting setting;
      setting.prepare = [&](int rank, TrainingOptions& own, Experiment& experiment) {
        if (rank == 0) TrainUntil(own.first, experiment);
      };
      const RanksRun run = TrainOnRanks(spec, layout.ranks, options, setting);
      ExpectWithin(run, options);
      EXPECT_TRUE(ContentsOf(run.rows) == std::vector(contents.begin() + 9, contents.end()));
      EXPECT_TRUE(run.layers == expected.layers);
    }
  }
}

TEST(RanksMemoryTest, CheckpointsAreThoseOfOneProcess) {
  for (const auto& [name, spec] : CheckpointSpecs(DelayedRanksSpec(4, 2))) {
    MemorySink expected;
    Experiment experiment = MakeExperiment(spec);
    TrainingOptions sequential = SequentialOptions();
    sequential.checkpoints.sink = &expected;
    sequential.checkpoints.every = 1;
    TrainOneRank(experiment, sequential);
    for (const Layout& layout : {Layout{2, 5, 16}, Layout{3, 3, 8}}) {
      TrainingOptions options = OptionsOf(spec, layout, 1);
      options.checkpoints.every = 1;
      options.checkpoints.bytes_in_flight_max = 4096;
      MemorySink sink;
      RanksSetting setting;
      setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
        if (rank == 0) own.checkpoints.sink = &sink;
        own.has_checkpoints = true;
      };
      const RanksRun run = TrainOnRanks(spec, layout.ranks, options, setting);
      ExpectWithin(run, options);
      EXPECT_TRUE(sink.rows == expected.rows) << name << ", ranks " << layout.ranks;
    }
  }
}

TEST(RanksMemoryTest, ARankThatFailsEndsTheOthers) {
  class FailingCopy : public StageProbe {
    void BeforeTransfer(const Transfer& transfer) override {
      if (transfer.kind == Transfer::Kind::kWriteBack) throw std::runtime_error("no memory");
    }
  } probe;
  const Spec spec = SmallSpec();
  const TrainingOptions options = OptionsOf(spec, {3, 3, 8}, 1);
  RanksSetting setting;
  setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
    if (rank == 1) own.probe = &probe;
  };
  const RanksRun run = TrainOnRanks(spec, 3, options, setting);
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_NE(outcome.detail.find("moving layers out: no memory"), std::string::npos)
        << outcome.detail;
  }
}

}  // namespace
}  // namespace verbatim
