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

Spec DelayedSpec(std::int64_t ends, std::int64_t middle) {
  Spec spec = SmallSpec();
  spec.training.subnets = 24;
  spec.training.microbatches = 2;
  spec.supernet.stem.delay = ends;
  spec.supernet.head.delay = ends;
  spec.supernet.blocks[0].delay = middle;
  spec.supernet.blocks[2].delay = middle;
  return spec;
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
                            DelayedSpec(ends, middle));
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

}  // namespace
}  // namespace verbatim
