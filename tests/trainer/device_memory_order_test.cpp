// Layers that move between home and devices that compute behind their hosts: a load comes after
// what wrote the home, a use after the load and after the write-back before it, a write-back after
// the update; and a wait that is left out, of any of these, is noticed.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/fake_device.h"
#include "tests/trainer/fake_payloads.h"
#include "tests/trainer/order_check.h"

namespace verbatim {
namespace {

constexpr int kStages = 3;

TrainingOptions OptionsOf(const Spec& spec, std::int64_t stages, int budget) {
  TrainingOptions options;
  options.stages = stages;
  options.in_flight = 6;
  options.device_memory = *LeastDeviceMemoryOf(MakeExperiment(spec), options) * budget;
  return options;
}

TEST(DeviceMemoryOrderTest, EveryUseComesAfterWhatWroteIt) {
  for (const auto& [name, spec] : DeviceSpecs()) {
    const RanksRun reference = TrainAlone(spec, SequentialOptions());
    for (const std::int64_t stages : {1, kStages}) {
      for (const int budget : {1, 1000}) {
        SCOPED_TRACE(::testing::Message()
                     << name << " on " << stages << " stages, budget " << budget);
        const auto seed = static_cast<std::uint32_t>(stages + budget);
        FakeDevice device(seed);
        OrderCheck check(seed);
        TrainingOptions options = OptionsOf(spec, stages, budget);
        options.open_stream = device.Opener();
        options.probe = &check;
        const RanksRun run = TrainAlone(spec, options);
        EXPECT_EQ(check.violations(), 0);
        EXPECT_EQ(check.unkept(), 0);
        EXPECT_GT(check.crossings(), 0);
        ExpectEqual(run, reference);
      }
    }
  }
}

/// The streams of a stage's copy threads are opened first: loads have even numbers.
bool IsLoad(int stream) {
  return stream < 2 * kStages && stream % 2 == 0;
}
bool IsWriteBack(int stream) {
  return stream < 2 * kStages && stream % 2 == 1;
}
bool IsStage(int stream) {
  return stream >= 2 * kStages;
}

void TrainOn(FakeDevice& device, int budget, OrderCheck& check) {
  const Spec spec = SmallSpec();
  TrainingOptions options = OptionsOf(spec, kStages, budget);
  options.open_stream = device.Opener();
  options.probe = &check;
  TrainAlone(spec, options);
}

std::int64_t ViolationsWith(std::function<bool(int waiting, int marked)> forgets, int budget) {
  FakeDevice device(1);
  device.ForgetWaits(std::move(forgets));
  OrderCheck check(1);
  TrainOn(device, budget, check);
  return check.violations();
}

/// Whether two tasks meet without the wait depends on the threads' timing: so several runs.
bool IsNoticed(const std::function<bool(int waiting, int marked)>& forgets, int budget) {
  constexpr int kRuns = 40;
  for (int run = 0; run < kRuns; ++run) {
    if (ViolationsWith(forgets, budget) > 0) return true;
  }
  return false;
}

TEST(DeviceMemoryOrderTest, MemoryThatIsNotKeptForItsReadersIsNoticed) {
  FakeDevice device(1);
  device.ForgetUses();
  OrderCheck check(1);
  TrainOn(device, 1, check);
  EXPECT_GT(check.unkept(), 0);
}

TEST(DeviceMemoryOrderTest, AWaitThatIsLeftOutIsNoticed) {
  EXPECT_EQ(ViolationsWith(nullptr, 1), 0);
  EXPECT_TRUE(IsNoticed([](int by, int of) { return IsLoad(by) && IsWriteBack(of); }, 1))
      << "a load does not wait for what wrote the home";
  EXPECT_TRUE(IsNoticed([](int by, int of) { return IsStage(by) && IsLoad(of); }, 1))
      << "a stage does not wait for the load";
  EXPECT_TRUE(IsNoticed([](int by, int of) { return IsWriteBack(by) && IsStage(of); }, 1))
      << "a write-back does not wait for the update";
  EXPECT_TRUE(IsNoticed([](int by, int of) { return IsStage(by) && IsWriteBack(of); }, 1000))
      << "a stage does not wait for the write-back of what it changes";
}

TEST(DeviceMemoryOrderTest, FullRecordsAndCheckpointsAreTheSame) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  ExpectSameRecordsOnDevices(spec, OptionsOf(spec, kStages, 1));
}

TEST(DeviceMemoryOrderTest, RanksTellTheSame) {
  const Spec spec = DelayedRanksSpec(3, 1);
  ExpectSameBitsOnRanks(spec, OptionsOf(spec, 4, 1));
}

TEST(DeviceMemoryOrderTest, LayersThatMoveGoPastTheChannelsBetweenDevices) {
  for (const Spec& spec : {SmallSpec(), DelayedRanksSpec(3, 1)}) {
    const RanksRun reference = TrainAlone(spec, SequentialOptions());
    FakeDevice device(9, FakeDevice::Waits::kOnHost);
    FakePayloads payloads(device, 3, 9);
    RanksSetting setting;
    setting.prepare = [&](int, TrainingOptions& options, Experiment&) {
      options.open_stream = device.Opener();
      options.open_payloads = payloads.Opener();
    };
    const RanksRun run = TrainOnRanks(spec, 3, OptionsOf(spec, 5, 1), setting);
    ExpectEqual(run, reference);
    EXPECT_GT(payloads.transfers(PayloadKind::kForward), 0);
    const bool has_delays = spec.supernet.stem.delay > 0;
    EXPECT_EQ(payloads.transfers(PayloadKind::kLayer) > 0, has_delays);
    EXPECT_GT(run.outcomes[0].versions_moved, 0);
  }
}

}  // namespace
}  // namespace verbatim
