// The promise, on several ranks: losses, versions, digests and the layers at the end are those of
// one process, whatever the ranks, the partition, the timing and the order of messages.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/ranks_run.h"

namespace verbatim {
namespace {

struct Layout {
  int ranks;
  std::int64_t stages;
  const char* partition = "balanced";
};

TrainingOptions OptionsOf(const Layout& layout) {
  TrainingOptions options;
  options.stages = layout.stages;
  options.in_flight = 8;
  options.partition = layout.partition;
  return options;
}

const Layout kLayouts[] = {{1, 2}, {2, 2}, {2, 5}, {3, 3, "equal"}, {3, 6}, {4, 7}};

void ExpectEqualOnAllLayouts(const std::string& name, const Spec& spec,
                             RecordLevel level = RecordLevel::kWeights) {
  TrainingOptions sequential = SequentialOptions();
  sequential.record_level = level;
  const RanksRun expected = TrainAlone(spec, sequential);
  std::uint32_t seed = 1;
  for (const Layout& layout : kLayouts) {
    TrainingOptions options = OptionsOf(layout);
    options.record_level = level;
    const RanksRun run = TrainOnRanks(spec, layout.ranks, options, {.seed = ++seed});
    SCOPED_TRACE(name + ", ranks " + std::to_string(layout.ranks) + ", stages " +
                 std::to_string(layout.stages) + ", seed " + std::to_string(seed));
    for (const TrainingOutcome& outcome : run.outcomes) {
      EXPECT_EQ(outcome.status, RunStatus::kComplete) << outcome.detail;
      EXPECT_EQ(outcome.subnets, spec.training.subnets);
    }
    EXPECT_EQ(ContentsOf(run.rows), ContentsOf(expected.rows));
    EXPECT_EQ(run.layers, expected.layers);
  }
}

TEST(RanksTest, AStreamOfImages) {
  Spec spec = SmallSpec();
  ExpectEqualOnAllLayouts("one batch", spec);
  spec.training.microbatches = 3;
  ExpectEqualOnAllLayouts("micro-batches", spec);
}

TEST(RanksTest, AdamAndAFullRecord) {
  Spec spec = SmallSpec();
  spec.training.optimizer = OptimizerSpec{};
  spec.training.optimizer.kind = OptimizerKind::kAdam;
  spec.training.lr.base = 0.001;
  spec.training.microbatches = 2;
  ExpectEqualOnAllLayouts("Adam, full", spec, RecordLevel::kFull);
}

TEST(RanksTest, Delays) {
  for (const auto& [ends, middle] : {std::pair{1, 0}, {4, 2}, {0, 3}, {100, 1}}) {
    ExpectEqualOnAllLayouts("delays " + std::to_string(ends) + ", " + std::to_string(middle),
                            DelayedRanksSpec(ends, middle));
  }
}

TEST(RanksTest, AFrozenStemAndHead) {
  Spec spec = SmallSpec();
  spec.supernet.stem.trainable = false;
  spec.supernet.head.trainable = false;
  ExpectEqualOnAllLayouts("frozen", spec);
}

TEST(RanksTest, ATextWhoseHeadIsTiedToItsStem) {
  Spec spec = SmallTextSpec();
  ExpectEqualOnAllLayouts("text", spec);
  spec.supernet.stem.delay = 3;
  spec.supernet.blocks[1].delay = 1;
  ExpectEqualOnAllLayouts("delayed text", spec);
  spec = SmallTextSpec();
  spec.supernet.stem.trainable = false;
  ExpectEqualOnAllLayouts("frozen embedding", spec);
}

TEST(RanksTest, LayersThatRankZeroHasLoadedReachAllRanks) {
  for (const Spec& spec : {SmallSpec(), DelayedRanksSpec(4, 2)}) {
    const RanksRun expected = TrainAlone(spec, SequentialOptions());
    const std::vector<std::string> contents = ContentsOf(expected.rows);
    for (const Layout& layout : kLayouts) {
      TrainingOptions options = OptionsOf(layout);
      options.first = 9;
      options.sends_layers = true;
      RanksSetting setting;
      setting.prepare = [&](int rank, TrainingOptions& own, Experiment& experiment) {
        if (rank > 0) return;
        TrainUntil(own.first, experiment);
        own.sends_layers = true;
      };
      const RanksRun run = TrainOnRanks(spec, layout.ranks, options, setting);
      EXPECT_EQ(run.outcomes[0].subnets, spec.training.subnets);
      EXPECT_EQ(ContentsOf(run.rows), std::vector(contents.begin() + 9, contents.end()));
      EXPECT_EQ(run.layers, expected.layers);
    }
  }
}

TEST(RanksTest, ASequenceWithGaps) {
  for (const Spec& spec : {SmallSpec(), DelayedRanksSpec(4, 2)}) {
    TrainingOptions alone;
    alone.sequence = {0, 2, 3, 5, 7, 8, 11, 15};
    const RanksRun expected = TrainAlone(spec, alone);
    for (const Layout& layout : kLayouts) {
      TrainingOptions options = OptionsOf(layout);
      options.sequence = alone.sequence;
      const RanksRun run = TrainOnRanks(spec, layout.ranks, options);
      EXPECT_EQ(run.outcomes[0].subnets, 8);
      EXPECT_EQ(ContentsOf(run.rows), ContentsOf(expected.rows));
      EXPECT_EQ(run.layers, expected.layers);
    }
  }
}

TEST(RanksTest, NothingIsDigestedWhereNobodyObserves) {
  const Spec spec = DelayedRanksSpec(4, 2);
  const RanksRun expected = TrainAlone(spec, SequentialOptions());
  float last = 0;
  RanksSetting setting;
  setting.is_observed = false;
  setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
    if (rank == 0) own.on_progress = [&](std::int64_t, float loss) { last = loss; };
  };
  const RanksRun run = TrainOnRanks(spec, 3, OptionsOf({3, 5}), setting);
  EXPECT_EQ(run.outcomes[0].status, RunStatus::kComplete) << run.outcomes[0].detail;
  EXPECT_EQ(run.layers, expected.layers);
  EXPECT_NE(last, 0);
}

TEST(RanksTest, LayersMoveBetweenRanksAndAreCounted) {
  const RanksRun run = TrainOnRanks(SmallSpec(), 3, OptionsOf({3, 3}));
  EXPECT_GT(run.outcomes[0].versions_moved, 0);
  // At least every subnet's activation and gradient, at two boundaries between ranks.
  EXPECT_GT(run.outcomes[0].bytes_moved, 16 * 2 * 2 * 12 * 64 * 4);
  std::set<std::int32_t> stages;
  for (const ActivityRow& row : run.rows.back().activities) {
    stages.insert(row.stage);
    EXPECT_LE(row.begin_ns, row.end_ns);
  }
  EXPECT_EQ(stages, (std::set<std::int32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace verbatim
