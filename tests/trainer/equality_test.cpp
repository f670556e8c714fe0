// The promise: every layout leaves the bits of the sequential reference. Records are made by the
// real recorder and compared by content, with random delays between tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

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

TEST(PartitionEqualityTest, NoPartitionChangesABit) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  const std::string reference = RecordedContent(spec, SequentialOptions());
  const std::pair<std::int64_t, const char*> cases[] = {
      {2, "equal"}, {2, "balanced"}, {3, "balanced"}, {5, "balanced"}, {3, "1,6,1"}, {3, "4,1,3"}};
  for (const auto& [stages, partition] : cases) {
    TrainingOptions options;
    options.stages = stages;
    options.partition = partition;
    RandomDelays delays(static_cast<std::uint32_t>(stages));
    options.probe = &delays;
    EXPECT_EQ(RecordedContent(spec, options), reference)
        << stages << " stages, partition " << partition;
  }
}

TEST(PartitionEqualityTest, TheBalancedPartitionDoesMoveLayers) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.stages = 3;
  TrainingOutcome outcome;
  const auto rows = TrainedRows(experiment, options, &outcome);
  EXPECT_GT(outcome.versions_moved, 0);
  std::map<std::int32_t, std::set<std::int32_t>> stages_of_layers;
  for (const SubnetRow& row : rows) {
    for (const AccessRow& access : row.accesses) {
      stages_of_layers[access.layer].insert(access.stage);
    }
  }
  EXPECT_TRUE(std::any_of(stages_of_layers.begin(), stages_of_layers.end(),
                          [](const auto& entry) { return entry.second.size() > 1; }));
}

/// The stem (with batch norm) and the head delayed by one number, a block in the middle by another.
Spec DelayedSpec(std::int64_t ends, std::int64_t middle) {
  Spec spec = SmallSpec();
  spec.training.subnets = 24;
  spec.training.microbatches = 2;
  spec.supernet.stem.delay = ends;
  spec.supernet.head.delay = ends;
  spec.supernet.blocks[2].delay = middle;
  return spec;
}

TEST(DelayTest, EveryLayoutLeavesTheSequentialRecord) {
  for (const auto& [ends, middle] : {std::pair{1, 0}, {4, 2}, {0, 3}, {100, 1}}) {
    const Spec spec = DelayedSpec(ends, middle);
    const std::string reference = RecordedContent(spec, SequentialOptions());
    for (const std::int64_t stages : {1, 2, 4, 8}) {
      TrainingOptions options;
      options.stages = stages;
      options.in_flight = 3 * stages;
      RandomDelays delays(static_cast<std::uint32_t>(stages));
      options.probe = &delays;
      EXPECT_EQ(RecordedContent(spec, options), reference)
          << "delays " << ends << " and " << middle << ", " << stages << " stages";
    }
  }
}

TEST(DelayTest, ReadsLagBehindUpdatesByTheDelay) {
  Experiment experiment = MakeExperiment(DelayedSpec(/*ends=*/4, /*middle=*/0));
  TrainingOptions options;
  options.stages = 2;
  options.in_flight = 8;
  for (const SubnetRow& row : TrainedRows(experiment, options)) {
    for (const AccessRow& access : {row.accesses.front(), row.accesses.back()}) {
      EXPECT_EQ(access.read_seq, std::max<std::int64_t>(row.seq - 5, -1)) << "subnet " << row.seq;
      EXPECT_EQ(access.base_seq, row.seq - 1) << "subnet " << row.seq;
    }
  }
}

TEST(DelayTest, ADelayIsPartOfWhatIsComputed) {
  EXPECT_NE(RecordedContent(DelayedSpec(4, 0), SequentialOptions()),
            RecordedContent(DelayedSpec(3, 0), SequentialOptions()));
}

TEST(DelayTest, OnlyVersionsThatMayStillBeReadAreKept) {
  Experiment experiment = MakeExperiment(DelayedSpec(/*ends=*/4, /*middle=*/2));
  TrainedRows(experiment, SequentialOptions());
  for (const Layer& layer : experiment.space.layers()) {
    EXPECT_LE(std::ssize(experiment.layers[layer.id].earlier), layer.delay) << layer.name;
  }
  EXPECT_EQ(experiment.layers.front().earlier.size(), 4u);
}

SamplerSpec Reordered(SamplerSpec inner) {
  SamplerSpec sampler;
  sampler.kind = SamplerKind::kReorder;
  sampler.of = {std::move(inner)};
  sampler.window = 8;
  return sampler;
}

/// What goes past the causal bound, one by one and together.
std::vector<std::pair<const char*, Spec>> SpecsPastTheBound() {
  Spec fair = SmallSpec();
  fair.sampler.kind = SamplerKind::kFair;
  Spec reorder = SmallSpec();
  reorder.sampler = Reordered(SamplerSpec{});
  Spec text = SmallTextSpec();
  Spec delayed_text = SmallTextSpec();
  delayed_text.supernet.stem.delay = 3;
  delayed_text.supernet.head.delay = 2;
  delayed_text.supernet.blocks[1].delay = 1;
  Spec all = DelayedSpec(4, 2);
  all.sampler.kind = SamplerKind::kFair;
  all.training.microbatches = 3;
  return {{"fair", fair},
          {"reorder", reorder},
          {"text", text},
          {"delayed text", delayed_text},
          {"fair, delays, micro-batches", all}};
}

TEST(PastTheBoundTest, EveryLayoutLeavesTheSequentialRecord) {
  for (const auto& [name, spec] : SpecsPastTheBound()) {
    const std::string reference = RecordedContent(spec, SequentialOptions());
    for (const std::int64_t stages : {1, 2, 3, 6}) {
      for (const char* partition : {"equal", "balanced"}) {
        TrainingOptions options;
        options.stages = stages;
        options.in_flight = 8;
        options.partition = partition;
        RandomDelays delays(static_cast<std::uint32_t>(stages));
        options.probe = &delays;
        EXPECT_EQ(RecordedContent(spec, options), reference)
            << name << ": " << stages << " stages, partition " << partition;
      }
    }
  }
}

TEST(PastTheBoundTest, EveryCausalPolicyLeavesTheSequentialRecord) {
  for (const auto& [name, spec] : SpecsPastTheBound()) {
    const std::string reference = RecordedContent(spec, SequentialOptions());
    for (const char* policy : {"causal", "gpipe", "1f1b"}) {
      TrainingOptions options;
      options.stages = 3;
      options.policy = policy;
      EXPECT_EQ(RecordedContent(spec, options), reference) << name << ", policy " << policy;
    }
  }
}

}  // namespace
}  // namespace verbatim
