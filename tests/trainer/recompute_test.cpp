// What is computed again in the backward pass has the bits that it had in the forward pass, writes
// no buffer again and is reported once.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"
#include "trainer/tensor_memory.h"

namespace verbatim {
namespace {

/// Six blocks with batch norm, a head with dropout; the last micro-batch is smaller.
Spec UnevenSpec() {
  Spec spec = SmallSpec();
  spec.training.subnets = 8;
  spec.training.batch = 13;
  spec.training.microbatches = 3;
  return spec;
}

Spec FrozenSpec() {
  Spec spec = UnevenSpec();
  spec.supernet.stem.trainable = false;
  spec.supernet.blocks[0].trainable = false;  // 1 to 3
  spec.supernet.head.trainable = false;
  return spec;
}

Spec DelayedSpec() {
  Spec spec = UnevenSpec();
  spec.supernet.stem.delay = 3;
  spec.supernet.blocks[0].delay = 1;
  spec.supernet.blocks[2].delay = 2;
  spec.supernet.head.delay = 3;
  return spec;
}

/// Dropout in blocks, a head tied to the stem.
Spec TextSpec() {
  Spec spec = SmallTextSpec();
  spec.training.subnets = 8;
  return spec;
}

Spec DelayedTextSpec() {
  Spec spec = TextSpec();
  spec.supernet.stem.delay = 3;
  spec.supernet.blocks[1].delay = 1;
  spec.supernet.head.delay = 2;
  return spec;
}

struct Workload {
  const char* name;
  Spec (*spec)();
  std::vector<const char*> ranges;
};

void PrintTo(const Workload& workload, std::ostream* out) {
  *out << workload.name;
}

class RecomputeTest : public ::testing::TestWithParam<Workload> {};

TEST_P(RecomputeTest, LeavesTheSequentialRecordOnEveryStageCount) {
  const Spec spec = GetParam().spec();
  TrainingOptions sequential = SequentialOptions();
  sequential.record_level = RecordLevel::kFull;
  const std::string reference = RecordedContent(spec, sequential);
  for (const char* ranges : GetParam().ranges) {
    for (const std::int64_t stages : {1, 2, 3}) {
      TrainingOptions options;
      options.stages = stages;
      options.record_level = RecordLevel::kFull;
      options.recompute = ranges;
      RandomDelays delays(static_cast<std::uint32_t>(stages));
      options.probe = &delays;
      EXPECT_EQ(RecordedContent(spec, options), reference)
          << "recompute " << ranges << ", " << stages << " stages";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Specs, RecomputeTest,
    ::testing::Values(Workload{"BatchNorm", UnevenSpec, {"all", "1-6", "2-3,5"}},
                      Workload{"Frozen", FrozenSpec, {"all", "1-6", "2-5"}},
                      Workload{"Delayed", DelayedSpec, {"all", "1-3,4-6"}},
                      Workload{"Text", TextSpec, {"all", "1-5", "2,4-5"}},
                      Workload{"DelayedText", DelayedTextSpec, {"all", "2-4"}}),
    [](const auto& workload) { return workload.param.name; });

/// Counts what the stages ask and say of each layer, and gives a key of its own to every dropout.
class Watch : public StageProbe {
 public:
  int keys(int position) const { return Of(keys_, position); }
  int outputs(int position) const { return Of(outputs_, position); }

  void OnDropoutKey(std::int64_t, const Layer& layer, RandomKey& key) override {
    key.c += 1000;
    Add(layer, keys_);
  }
  void OnForward(std::int64_t, std::int32_t, const Layer& layer, const at::Tensor&) override {
    Add(layer, outputs_);
  }

 private:
  using Counts = std::map<int, int>;  // by position

  static int Of(const Counts& counts, int position) {
    const auto found = counts.find(position);
    return found == counts.end() ? 0 : found->second;
  }
  void Add(const Layer& layer, Counts& counts) {
    const std::lock_guard lock(mutex_);
    ++counts[layer.position];
  }

  std::mutex mutex_;
  Counts keys_;
  Counts outputs_;
};

TEST(RecomputeProbeTest, AKeyIsAskedForAgainAndAnOutputIsShownOnce) {
  const Spec spec = TextSpec();  // 8 subnets of 3 micro-batches
  TrainingOptions options;
  options.stages = 2;
  options.recompute = "2-3";
  Watch watch;
  options.probe = &watch;
  const std::string content = RecordedContent(spec, options);
  for (int position = 0; position < 7; ++position) {
    EXPECT_EQ(watch.outputs(position), 24) << position;
    EXPECT_EQ(watch.keys(position), position == 2 || position == 3 ? 48 : 24) << position;
  }
  Watch other;
  TrainingOptions sequential = SequentialOptions();
  sequential.probe = &other;
  EXPECT_EQ(content, RecordedContent(spec, sequential)) << "the probe's keys were not used again";
  EXPECT_NE(content, RecordedContent(spec, SequentialOptions()));
}

TEST(RecomputeProbeTest, WhatHasNoGradientIsNotComputedAgain) {
  const Spec spec = FrozenSpec();  // stem and blocks 1 to 3
  TrainingOptions options;
  options.stages = 1;
  options.recompute = "1-3,4-5";
  Watch watch;
  options.probe = &watch;
  RecordedContent(spec, options);
  for (int position = 0; position < 8; ++position) {
    EXPECT_EQ(watch.keys(position), position == 4 || position == 5 ? 48 : 24) << position;
  }
}

#ifndef __SANITIZE_ADDRESS__
/// Most memory of tensors beside what is there before, all micro-batches held at once.
std::int64_t PeakBytes(const std::string& ranges) {
  Spec spec = SmallSpec();
  spec.training.subnets = 4;
  spec.training.batch = 128;
  spec.training.microbatches = 4;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.policy = "gpipe";
  options.recompute = ranges;
  ForgetTensorPeak();
  const std::int64_t before = UsedTensorMemory().now;
  EXPECT_TRUE(Train(experiment, options).has_value());
  return UsedTensorMemory().peak - before;
}

TEST(RecomputeMemoryTest, LessIsHeld) {
  PoolTensorMemory();
  const std::int64_t plain = PeakBytes("none");
  EXPECT_GT(plain, 0);
  for (const char* ranges : {"all", "1-3,4-6"}) {
    EXPECT_LT(PeakBytes(ranges), plain * 2 / 3) << ranges << " of " << plain;
  }
}
#endif

TEST(RecomputeCheckTest, WhatTheSpaceDoesNotHaveIsRefused) {
  Experiment experiment = MakeExperiment(SmallSpec());
  for (const char* ranges : {"0-2", "6-7", "3-2", "1-3,3-4", "blocks"}) {
    TrainingOptions options;
    options.recompute = ranges;
    const auto outcome = Train(experiment, options);
    ASSERT_FALSE(outcome.has_value()) << ranges;
    EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage) << ranges;
  }
}

}  // namespace
}  // namespace verbatim
