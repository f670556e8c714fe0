// Stages whose devices compute behind their hosts: every use of a tensor comes after what wrote it,
// on the device too, and what the observer is told is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/trainer/fake_device.h"
#include "tests/trainer/order_check.h"
#include "tests/trainer/ranks_run.h"
#include "tests/trainer/small_run.h"
#include "trainer/result_queue.h"

namespace verbatim {
namespace {

TEST(DeviceOrderTest, EveryUseComesAfterWhatWroteIt) {
  for (const auto& [name, spec] : DeviceSpecs()) {
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
  FakeDevice device(1, FakeDevice::Waits::kNever);
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
  TrainingOptions options;
  options.stages = 3;
  ExpectSameRecordsOnDevices(spec, options);
}

TEST(DeviceOrderTest, RanksTellTheSame) {
  TrainingOptions options;
  options.stages = 4;
  ExpectSameBitsOnRanks(DelayedRanksSpec(3, 1), options);
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
