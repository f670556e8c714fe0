// Ranks whose devices send each other tensors directly: the bits are those of one process, and a
// rank that is lost leaves nobody waiting, and nothing wrong behind.
#include "trainer/device_payloads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/fake_payloads.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/order_check.h"

namespace verbatim {
namespace {

constexpr int kNoLayerChannels = 1;

/// What carries one run's tensors.
struct Fixture {
  explicit Fixture(int ranks, std::uint32_t seed,
                   FakeDevice::Waits waits = FakeDevice::Waits::kOnHost,
                   int ranks_with_layer_channels_max = kRanksWithLayerChannelsMax)
      : device(seed, waits),
        payloads(device, ranks, seed + 1, ranks_with_layer_channels_max),
        check(seed + 2) {
    setting.seed = seed;
    setting.prepare = [this](int, TrainingOptions& options, Experiment&) {
      options.open_stream = device.Opener();
      options.open_payloads = payloads.Opener();
      options.probe = &check;
    };
  }

  FakeDevice device;
  FakePayloads payloads;
  OrderCheck check;
  RanksSetting setting;
};

TrainingOptions OnStages(std::int64_t stages, const char* partition = "balanced") {
  TrainingOptions options;
  options.stages = stages;
  options.in_flight = 8;
  options.partition = partition;
  return options;
}

TEST(DevicePayloadsTest, BitsAreThoseOfOneProcess) {
  std::uint32_t seed = 10;
  for (const auto& [name, spec] : DeviceSpecs()) {
    const RanksRun reference = TrainAlone(spec, SequentialOptions());
    for (const auto& [ranks, stages] : {std::pair{2, 2}, {2, 5}, {3, 3}, {4, 7}}) {
      SCOPED_TRACE(::testing::Message()
                   << name << ", ranks " << ranks << ", stages " << stages << ", seed " << ++seed);
      Fixture setup(ranks, seed);
      const RanksRun run = TrainOnRanks(spec, ranks, OnStages(stages), setup.setting);
      ExpectEqual(run, reference);
      EXPECT_EQ(setup.check.violations(), 0);
      const std::int64_t activations =
          spec.training.subnets * spec.training.microbatches * (ranks - 1);
      EXPECT_EQ(setup.payloads.transfers(PayloadKind::kForward), activations);
      EXPECT_EQ(setup.payloads.transfers(PayloadKind::kBackward), activations);
      EXPECT_EQ(setup.payloads.abandoned(), 0);
    }
  }
}

TEST(DevicePayloadsTest, LayersMoveDirectlyOrThroughTheHost) {
  const Spec spec = SmallSpec();
  const RanksRun reference = TrainAlone(spec, SequentialOptions());
  std::vector<std::int64_t> bytes;
  for (const int most : {kRanksWithLayerChannelsMax, kNoLayerChannels}) {
    Fixture setup(3, 5, FakeDevice::Waits::kOnHost, most);
    const RanksRun run = TrainOnRanks(spec, 3, OnStages(6), setup.setting);
    ExpectEqual(run, reference);
    EXPECT_GT(run.outcomes[0].versions_moved, 0);
    EXPECT_EQ(setup.payloads.transfers(PayloadKind::kLayer) > 0, most != kNoLayerChannels);
    bytes.push_back(run.outcomes[0].bytes_moved);
  }
  EXPECT_GT(bytes[0], 16 * 2 * 2 * 12 * 64 * 4);  // either way they are counted
  EXPECT_GT(bytes[1], 16 * 2 * 2 * 12 * 64 * 4);
}

TEST(DevicePayloadsTest, LoadedLayersAndCheckpointsAreTheSame) {
  const Spec spec = DelayedRanksSpec(2, 1);
  const auto train = [&](const RanksSetting& setting, int ranks, MemorySink& sink) {
    RanksSetting own = setting;
    own.prepare = [&](int rank, TrainingOptions& options, Experiment& experiment) {
      if (setting.prepare) setting.prepare(rank, options, experiment);
      options.checkpoints.every = 6;
      options.has_checkpoints = true;
      if (rank > 0) return;
      options.checkpoints.sink = &sink;
      TrainUntil(options.first, experiment);
    };
    TrainingOptions options = OnStages(ranks + 1);
    options.first = 5;
    options.sends_layers = true;
    return TrainOnRanks(spec, ranks, options, own);
  };
  MemorySink expected;
  const RanksRun reference = train({}, 1, expected);
  Fixture setup(3, 40);
  MemorySink sink;
  ExpectEqual(train(setup.setting, 3, sink), reference);
  EXPECT_TRUE(sink.rows == expected.rows);
}

TEST(DevicePayloadsTest, AStreamThatForgetsToWaitIsNoticed) {
  Fixture setup(2, 7, FakeDevice::Waits::kNever);
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  const RanksRun run = TrainOnRanks(spec, 2, OnStages(4), setup.setting);
  EXPECT_GT(setup.check.violations(), 0);
  EXPECT_EQ(run.outcomes[0].status, RunStatus::kFailed);  // a loss of NaN
}

std::string NameOf(int rank) {
  return Describe({rank, "host" + std::to_string(rank), 100 + rank});
}

/// Every rank has failed, for one reason; what is recorded is right.
void ExpectSoundFailure(const RanksRun& run, const Spec& spec, const std::set<std::string>& whys) {
  std::set<std::string> expected;
  for (std::string& content : ContentsOf(TrainAlone(spec, SequentialOptions()).rows)) {
    expected.insert(std::move(content));
  }
  for (const std::string& content : ContentsOf(run.rows)) EXPECT_TRUE(expected.contains(content));
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_TRUE(whys.contains(outcome.detail.substr(0, outcome.detail.find("; "))))
        << outcome.detail;
  }
}

TEST(DevicePayloadsTest, ALostRankLeavesNobodyWaiting) {
  std::int64_t abandoned = 0;
  for (const MessageKind kind : {MessageKind::kTask, MessageKind::kVersion}) {
    for (const int lost : {0, 1, 2}) {
      for (const std::uint32_t seed : {1, 2, 3}) {
        SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << ", rank " << lost
                                          << ", seed " << seed);
        Fixture setup(3, 100 * seed);
        std::atomic<int> messages{0};
        setup.setting.filter = [&](int from, int, const Message& message) {
          const int at = kind == MessageKind::kTask ? 5 : 2;
          if (from != lost || message.kind != kind || ++messages != at) return Fate::kArrives;
          // What it has announced and not sent to its end never comes.
          setup.payloads.Kill(lost);
          return Fate::kSenderLost;
        };
        const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(5), setup.setting);
        ExpectSoundFailure(run, SmallSpec(), {NameOf(lost) + " broke its connection"});
        abandoned += setup.payloads.abandoned();
      }
    }
  }
  EXPECT_GT(abandoned, 0);
}

TEST(DevicePayloadsTest, AChannelThatNobodyServesEndsInTime) {
  Fixture setup(3, 9);
  std::atomic<int> messages{0};
  setup.setting.filter = [&](int from, int, const Message& message) {
    if (from == 1 && message.kind == MessageKind::kTask && ++messages == 6) setup.payloads.Kill(1);
    return Fate::kArrives;
  };
  TrainingOptions options = OnStages(3);
  options.stall_timeout_ms = 2000;
  const RanksRun run = TrainOnRanks(SmallSpec(), 3, options, setup.setting);
  ExpectSoundFailure(run, SmallSpec(), {run.outcomes[1].detail});
  EXPECT_NE(run.outcomes[1].detail.find("in 2 s"), std::string::npos) << run.outcomes[1].detail;
  EXPECT_GT(setup.payloads.abandoned(), 0);
}

TEST(DevicePayloadsTest, ABrokenChannelIsToldOnAllRanks) {
  for (const int rank : {0, 2}) {
    Fixture setup(3, 11);
    std::atomic<int> messages{0};
    setup.setting.filter = [&](int from, int, const Message& message) {
      if (from == rank && message.kind == MessageKind::kTask && ++messages == 4) {
        setup.payloads.Break(rank, "layers from rank 0 to rank 2: NCCL: remote error");
      }
      return Fate::kArrives;
    };
    const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(3), setup.setting);
    ExpectSoundFailure(run, SmallSpec(),
                       {NameOf(rank) + ": layers from rank 0 to rank 2: NCCL: remote error"});
  }
}

TEST(DevicePayloadsTest, AnInvitationThatNobodySendsFromARankOfCpusIsRefused) {
  RanksSetting setting;
  FakeDevice device(1, FakeDevice::Waits::kOnHost);
  FakePayloads payloads(device, 2, 1);
  setting.prepare = [&](int rank, TrainingOptions& options, Experiment&) {
    options.open_stream = device.Opener();
    if (rank == 0) options.open_payloads = payloads.Opener();
  };
  const RanksRun run = TrainOnRanks(SmallSpec(), 2, OnStages(2), setting);
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_NE(outcome.detail.find("an invitation to channels"), std::string::npos)
        << outcome.detail;
  }
}

}  // namespace
}  // namespace verbatim
