// Stages whose devices compute behind their hosts: every use of a tensor comes after what wrote it,
// on the device too, and what the observer is told is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/trainer/fake_device.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/random_delays.h"
#include "tests/trainer/ranks_run.h"
#include "tests/trainer/small_run.h"
#include "trainer/result_queue.h"

namespace verbatim {
namespace {

/// Compares what a stage uses with what was enqueued before, whatever marks say.
class OrderCheck : public StageProbe {
 public:
  explicit OrderCheck(std::uint32_t seed) : delays_(seed) {}

  std::int64_t violations() const { return violations_; }
  std::int64_t crossings() const { return crossings_; }

  void BeforeTask(int stage, const Task& task) override { delays_.BeforeTask(stage, task); }
  void OnRead(std::int64_t, const Layer& layer, LayerRead& read) override {
    if (layer.IsVersioned()) Uses(written_, {layer.id, read.version});
  }
  void OnForward(std::int64_t seq, std::int32_t microbatch, const Layer&,
                 const at::Tensor&) override {
    Uses(activations_, {seq, microbatch});
    Writes(activations_, {seq, microbatch});
  }
  bool OnGradients(std::int64_t seq, std::int32_t microbatch, const Layer&, std::span<at::Tensor>,
                   std::span<const at::Tensor>) override {
    // On every stage after the last stage's forward: gradients have come from there.
    Uses(activations_, {seq, microbatch});
    return false;
  }
  void BeforeUpdate(std::int64_t, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    Uses(written_, {layer.id, state.version});
  }
  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                   LayerState&) override {
    Writes(written_, {layer.id, seq});
  }

 private:
  using Moments = std::map<std::pair<std::int64_t, std::int64_t>, FakeDevice::Moment>;
  using Key = Moments::key_type;

  void Uses(Moments& moments, const Key& key) {
    const std::lock_guard lock(mutex_);
    const FakeDevice::Moment& moment = moments[key];
    if (moment.stream >= 0 && moment.stream != FakeDevice::Now().stream) ++crossings_;
    if (!FakeDevice::IsAfter(moment)) ++violations_;
  }
  void Writes(Moments& moments, const Key& key) {
    const std::lock_guard lock(mutex_);
    moments[key] = FakeDevice::Now();
  }

  RandomDelays delays_;
  std::mutex mutex_;
  Moments written_;      ///< by layer and version
  Moments activations_;  ///< by subnet and micro-batch: the newest activation
  std::int64_t violations_ = 0;
  std::int64_t crossings_ = 0;
};

/// Delays, frozen layers, batch norm, dropout and moving partitions; a tied head, on text.
std::vector<std::pair<const char*, Spec>> Specs() {
  Spec plain = SmallSpec();
  plain.training.microbatches = 3;
  Spec frozen = SmallSpec();
  frozen.supernet.stem.trainable = false;
  Spec text = SmallTextSpec();
  text.supernet.blocks[1].delay = 2;
  return {
      {"plain", plain}, {"frozen", frozen}, {"delayed", DelayedRanksSpec(4, 2)}, {"text", text}};
}

void ExpectEqual(const RanksRun& run, const RanksRun& reference) {
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kComplete) << outcome.detail;
  }
  // Without printing them: they are no text.
  EXPECT_TRUE(ContentsOf(run.rows) == ContentsOf(reference.rows));
  EXPECT_TRUE(run.layers == reference.layers);
}

TEST(DeviceOrderTest, EveryUseComesAfterWhatWroteIt) {
  for (const auto& [name, spec] : Specs()) {
    const RanksRun reference = TrainAlone(spec, SequentialOptions());
    for (const std::int64_t stages : {1, 2, 3, 6}) {
      SCOPED_TRACE(::testing::Message() << name << " on " << stages << " stages");
      const auto seed = static_cast<std::uint32_t>(stages);
      FakeDevice device(seed);
      OrderCheck check(seed);
      TrainingOptions options;
      options.stages = stages;
      options.in_flight = 6;
      options.open_stream = device.Opener();
      options.probe = &check;
      const RanksRun run = TrainAlone(spec, options);
      EXPECT_EQ(check.violations(), 0);
      EXPECT_EQ(check.crossings() > 0, stages > 1);
      EXPECT_GT(device.marks(), 0);
      ExpectEqual(run, reference);
    }
  }
}

TEST(DeviceOrderTest, AStreamThatForgetsToWaitIsNoticed) {
  FakeDevice device(1, /*waits=*/false);
  OrderCheck check(1);
  TrainingOptions options;
  options.stages = 3;
  options.open_stream = device.Opener();
  options.probe = &check;
  TrainAlone(SmallSpec(), options);
  EXPECT_GT(check.violations(), 0);
}

TEST(DeviceOrderTest, FullRecordsAndCheckpointsAreTheSame) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  const auto train = [&](FakeDevice* device, MemorySink& sink) {
    Experiment experiment = MakeExperiment(spec);
    TrainingOptions options;
    options.stages = 3;
    options.record_level = RecordLevel::kFull;
    options.checkpoints.sink = &sink;
    options.checkpoints.every = 5;
    if (device) options.open_stream = device->Opener();
    return ContentsOf(TrainedRows(experiment, options));
  };
  MemorySink expected;
  const auto reference = train(nullptr, expected);
  for (const std::uint32_t seed : {1, 2, 3}) {
    FakeDevice device(seed);
    MemorySink sink;
    EXPECT_TRUE(train(&device, sink) == reference) << "seed " << seed;
    EXPECT_TRUE(sink.rows == expected.rows) << "seed " << seed;
  }
}

TEST(DeviceOrderTest, RanksTellTheSame) {
  const Spec spec = DelayedRanksSpec(3, 1);
  const RanksRun reference = TrainAlone(spec, SequentialOptions());
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(::testing::Message() << ranks << " ranks");
    std::vector<std::unique_ptr<FakeDevice>> devices;
    for (int rank = 0; rank < ranks; ++rank) {
      devices.push_back(std::make_unique<FakeDevice>(static_cast<std::uint32_t>(rank)));
    }
    RanksSetting setting;
    setting.prepare = [&](int rank, TrainingOptions& options, Experiment&) {
      options.open_stream = devices[rank]->Opener();
    };
    TrainingOptions options;
    options.stages = 4;
    const RanksRun run = TrainOnRanks(spec, ranks, options, setting);
    ExpectEqual(run, reference);
  }
}

TEST(DeviceOrderTest, NoMoreSubnetsAreInFlightThanAllowed) {
  class InFlight : public Observer {
   public:
    void OnSubnetStarted(std::int64_t, std::vector<std::uint16_t>,
                         std::vector<std::uint32_t>) override {
      const std::lock_guard lock(mutex_);
      most = std::max(most, ++now_);
    }
    void OnBatch(std::int64_t, const Digest&) override {}
    void OnAccess(std::int64_t, const AccessRow&) override {}
    void OnActivation(std::int64_t, const ActivationRow&) override {}
    void OnActivity(std::int64_t, const ActivityRow&) override {}
    void OnLoss(std::int64_t, float) override {}
    Status OnSubnetFinished(std::int64_t) override {
      const std::lock_guard lock(mutex_);
      --now_;
      return {};
    }
    int most = 0;

   private:
    std::mutex mutex_;
    int now_ = 0;
  } observer;
  Experiment experiment = MakeExperiment(SmallSpec());
  FakeDevice device(7);
  TrainingOptions options;
  options.stages = 2;
  options.in_flight = 3;
  options.observer = &observer;
  options.open_stream = device.Opener();
  EXPECT_EQ(TrainOneRank(experiment, options).subnets, 16);
  EXPECT_LE(observer.most, 3);
}

/// A device that fails in the middle of a run.
class FailingMark : public DeviceMark {
 public:
  void Synchronize() const override { throw std::runtime_error("CUDA error: out of luck"); }
};

TEST(ResultQueueTest, AFailureOfTheDeviceIsToldOnceAndDropsTheRest) {
  std::vector<std::string> told;
  int handed_out = 0;
  {
    ResultQueue results(true, [&](const std::string& why) { told.push_back(why); });
    results.Add(nullptr, [&] { ++handed_out; });
    results.Add(std::make_shared<FailingMark>(), [&] { handed_out += 100; });
    results.Add(nullptr, [&] { handed_out += 100; });
    results.Close();
  }
  EXPECT_EQ(told, std::vector<std::string>{"CUDA error: out of luck"});
  EXPECT_EQ(handed_out, 1);
}

TEST(ResultQueueTest, ResultsComeInOrderWhateverTheirMarks) {
  FakeDevice device(3);
  const auto stream = device.Opener()(at::kCPU);
  std::vector<int> order;
  ResultQueue results(true, [](const std::string& why) { FAIL() << why; });
  for (int i = 0; i < 200; ++i) {
    results.Add(i % 3 == 0 ? nullptr : stream->Record(), [&order, i] { order.push_back(i); });
  }
  results.Close();
  ASSERT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(ResultQueueTest, WithoutADeviceTheCallerHandsOut) {
  ResultQueue results(false, [](const std::string& why) { FAIL() << why; });
  const std::thread::id caller = std::this_thread::get_id();
  std::thread::id seen;
  results.Add(nullptr, [&] { seen = std::this_thread::get_id(); });
  EXPECT_EQ(seen, caller);
}

}  // namespace
}  // namespace verbatim
