// The two ways to hold less, together: what is computed again while layers come and go has the bits
// of the sequential reference, whatever the ranges, the stages and the budget.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/trainer/random_delays.h"
#include "tests/trainer/ranks_run.h"
#include "trainer/layer_copies.h"

namespace verbatim {
namespace {

/// Batch norm, dropout, momentum; nothing frozen or delayed. Six blocks.
Spec PlainSpec() {
  Spec spec = SmallSpec();
  spec.training.subnets = 8;
  spec.training.batch = 13;
  spec.training.microbatches = 3;
  return spec;
}

/// Likewise with delays at both ends and between, and frozen blocks.
Spec MixedSpec() {
  Spec spec = PlainSpec();
  spec.supernet.stem.delay = 2;
  spec.supernet.blocks[0].trainable = false;  // 1 to 3
  spec.supernet.blocks[2].delay = 1;          // 5 and 6
  spec.supernet.head.delay = 3;
  return spec;
}

/// A head tied to a stem that moves; dropout in blocks. Five blocks.
Spec TiedSpec() {
  Spec spec = SmallTextSpec();
  spec.training.subnets = 8;
  return spec;
}

/// Of what a stage may hold: the least, all there is, and between.
std::vector<std::int64_t> BudgetsOf(const Experiment& experiment, const TrainingOptions& options) {
  const std::int64_t least = *LeastDeviceMemoryOf(experiment, options);
  std::int64_t all = 0;
  for (const LayerBytes& bytes : BytesOfLayers(experiment.layers)) {
    all += bytes.total() + 4 * bytes.parameters;  // versions of those with a delay
  }
  std::vector<std::int64_t> budgets;
  for (std::int64_t budget = least; budget < all; budget *= 2) budgets.push_back(budget);
  budgets.push_back(all);
  return budgets;
}

void ExpectTheReference(const Spec& spec, const char* ranges) {
  TrainingOptions sequential = SequentialOptions();
  sequential.record_level = RecordLevel::kFull;
  const RanksRun expected = TrainAlone(spec, sequential);
  for (const char* recompute : {"none", "all", ranges}) {
    for (const std::int64_t stages : {1, 2, 3}) {
      TrainingOptions options;
      options.stages = stages;
      options.record_level = RecordLevel::kFull;
      options.recompute = recompute;
      for (const std::int64_t budget : BudgetsOf(MakeExperiment(spec), options)) {
        SCOPED_TRACE(::testing::Message() << "recompute " << recompute << ", " << stages
                                          << " stages, " << budget << " bytes");
        options.device_memory = budget;
        RandomDelays delays(static_cast<std::uint32_t>(budget));
        options.probe = &delays;
        const RanksRun run = TrainAlone(spec, options);
        EXPECT_EQ(run.outcomes[0].status, RunStatus::kComplete) << run.outcomes[0].detail;
        EXPECT_TRUE(ContentsOf(run.rows) == ContentsOf(expected.rows));
        EXPECT_TRUE(run.layers == expected.layers);
      }
    }
  }
}

TEST(MemoryMatrixTest, BatchNormDropoutAndMomentum) {
  ExpectTheReference(PlainSpec(), "1-2,4-6");
}

TEST(MemoryMatrixTest, DelaysAndFrozenBlocks) {
  ExpectTheReference(MixedSpec(), "2-5");
}

TEST(MemoryMatrixTest, AHeadTiedToItsStem) {
  ExpectTheReference(TiedSpec(), "1-3,5");
}

}  // namespace
}  // namespace verbatim
