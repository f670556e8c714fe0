// A run on ranks that goes wrong anywhere ends everywhere, and every rank says the same.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/trainer/ranks_run.h"

namespace verbatim {
namespace {

TrainingOptions OnStages(std::int64_t stages) {
  TrainingOptions options;
  options.stages = stages;
  options.in_flight = 8;
  return options;
}

std::string NameOf(int rank) {
  return Describe({rank, "host" + std::to_string(rank), 100 + rank});
}

/// Every rank says why; rank 0 also says how far the run came.
void ExpectAllFailed(const RanksRun& run, const std::string& why) {
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    const bool is_first = &outcome == &run.outcomes[0];
    const std::string count =
        "; " + std::to_string(run.outcomes[0].subnets) + " of 16 subnets had finished";
    EXPECT_EQ(outcome.detail, is_first ? why + count : why);
  }
}

/// What finished before the failure is recorded, and is right.
void ExpectSoundRows(const RanksRun& run, const Spec& spec) {
  std::set<std::string> expected;
  for (std::string& content : ContentsOf(TrainAlone(spec, SequentialOptions()).rows)) {
    expected.insert(std::move(content));
  }
  for (const std::string& content : ContentsOf(run.rows)) EXPECT_TRUE(expected.contains(content));
}

TEST(RanksFailureTest, ALostRankEndsTheRunWithItsName) {
  for (const MessageKind kind : {MessageKind::kClock, MessageKind::kTask, MessageKind::kVersion,
                                 MessageKind::kFinished, MessageKind::kDone}) {
    for (const int lost : {1, 2}) {
      std::atomic<int> messages{0};
      const bool is_rare = kind == MessageKind::kDone || kind == MessageKind::kVersion;
      const int at = is_rare ? 1 : 3;
      RanksSetting setting;
      setting.seed = static_cast<std::uint32_t>(kind) * 10;
      setting.filter = [&](int from, int, const Message& message) {
        if (from != lost || message.kind != kind || ++messages != at) return Fate::kArrives;
        return Fate::kSenderLost;
      };
      const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(5), setting);
      ExpectAllFailed(run, NameOf(lost) + " broke its connection");
      ExpectSoundRows(run, SmallSpec());
    }
  }
}

TEST(RanksFailureTest, ALostRankZeroEndsTheOthers) {
  std::atomic<int> messages{0};
  RanksSetting setting;
  setting.filter = [&](int from, int, const Message& message) {
    const bool is_counted = from == 0 && message.kind == MessageKind::kTask;
    return is_counted && ++messages == 7 ? Fate::kSenderLost : Fate::kArrives;
  };
  const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(3), setting);
  ExpectAllFailed(run, NameOf(0) + " broke its connection");
}

class Throws : public StageProbe {
 public:
  explicit Throws(int stage) : stage_(stage) {}
  void BeforeTask(int stage, const Task& task) override {
    if (stage == stage_ && task.seq == 4) throw std::runtime_error("out of memory\nstack trace");
  }

 private:
  int stage_;
};

TEST(RanksFailureTest, AThrowInAStageIsToldOnAllRanks) {
  for (const int stage : {0, 2, 3}) {
    Throws probe(stage);
    RanksSetting setting;
    setting.prepare = [&](int, TrainingOptions& own, Experiment&) { own.probe = &probe; };
    const RanksRun run = TrainOnRanks(SmallSpec(), 2, OnStages(4), setting);
    ExpectAllFailed(run,
                    NameOf(stage / 2) + ": stage " + std::to_string(stage) + ": out of memory");
  }
}

TEST(RanksFailureTest, AnObserversErrorIsToldOnAllRanks) {
  SubnetAssembler full_disk([](SubnetRow&& row) -> Status {
    if (row.seq < 3) return {};
    return Failed("the disk is full");
  });
  RanksSetting setting;
  setting.is_observed = false;
  setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
    own.is_observed = true;
    if (rank == 0) own.observer = &full_disk;
  };
  const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(4), setting);
  ExpectAllFailed(run, NameOf(0) + ": the disk is full");
}

TEST(RanksFailureTest, ALossThatIsNotFiniteEndsAllRanks) {
  Spec spec = SmallSpec();
  spec.training.lr.base = 1e30;
  const RanksRun run = TrainOnRanks(spec, 3, OnStages(3));
  EXPECT_LT(run.rows.size(), 16u);
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_TRUE(outcome.detail.starts_with("the loss of subnet ")) << outcome.detail;
    EXPECT_EQ(outcome.detail, run.outcomes[0].detail);
  }
}

/// What one process leaves when it stops there.
std::vector<std::string> LayerFilesAfter(std::int64_t subnets, const Spec& spec) {
  Experiment experiment = MakeExperiment(spec);
  TrainUntil(subnets, experiment);
  return LayerFiles(experiment);
}

TEST(RanksFailureTest, ARequestToStopOnAnyRankStopsAll) {
  Spec spec = SmallSpec();
  spec.training.subnets = 2000;
  for (const int asked : {0, 2}) {
    std::atomic<bool> stop{false};
    RanksSetting setting;
    setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
      if (rank == asked) own.stop = &stop;
      if (rank == 0) own.on_progress = [&](std::int64_t finished, float) { stop = finished >= 3; };
    };
    const RanksRun run = TrainOnRanks(spec, 3, OnStages(3), setting);
    const auto finished = static_cast<std::int64_t>(run.rows.size());
    for (const TrainingOutcome& outcome : run.outcomes) {
      EXPECT_EQ(outcome.status, RunStatus::kInterrupted);
      EXPECT_EQ(outcome.subnets, finished);
      EXPECT_EQ(outcome.detail,
                "stopped on request after " + std::to_string(finished) + " of 2000 subnets");
    }
    EXPECT_LT(finished, 2000);
    EXPECT_EQ(run.rows.back().seq, finished - 1);
    EXPECT_EQ(run.layers, LayerFilesAfter(finished, spec));
  }
}

/// Holds one task up for ever.
class Holds : public StageProbe {
 public:
  explicit Holds(int stage) : stage_(stage) {}
  void BeforeTask(int stage, const Task& task) override {
    if (stage == stage_ && task.seq == 4 && task.kind == TaskKind::kForward) never_.wait();
  }

 private:
  int stage_;
  std::promise<void> promise_;
  std::future<void> never_ = promise_.get_future();
};

TEST(RanksFailureTest, AStageThatHangsIsNamedAndKeepsNoRank) {
  for (const int stage : {0, 2}) {
    // Its thread outlives the run.
    auto* const probe = new Holds(stage);
    std::atomic<bool> has_stuck_stage = false;
    RanksSetting setting;
    setting.prepare = [&](int, TrainingOptions& own, Experiment&) {
      own.stall_timeout_ms = 2000;
      own.probe = probe;
      own.has_stuck_stage = &has_stuck_stage;
    };
    const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(3), setting);
    EXPECT_TRUE(has_stuck_stage);
    ExpectAllFailed(run, NameOf(stage) + ": stage " + std::to_string(stage) +
                             " has not finished the forward of subnet 4, micro-batch 0, in 2 s");
    ExpectSoundRows(run, SmallSpec());
  }
}

/// Holds stage 2 up for ever; then stage 0 fails.
class HoldsAndThrows : public StageProbe {
 public:
  void BeforeTask(int stage, const Task& task) override {
    if (stage == 2) holds_.set_value(), never_.get_future().wait();
    if (stage == 0 && task.seq > 0) {
      has_hold_.wait();
      throw std::runtime_error("out of memory");
    }
  }

 private:
  std::promise<void> holds_;
  std::future<void> has_hold_ = holds_.get_future();
  std::promise<void> never_;
};

TEST(RanksFailureTest, AStageThatHangsKeepsNoRankWhereAnotherFailed) {
  auto* const probe = new HoldsAndThrows;
  RanksSetting setting;
  setting.prepare = [&](int, TrainingOptions& own, Experiment&) {
    own.stall_timeout_ms = 2000;
    own.probe = probe;
  };
  Spec spec = SmallSpec();
  spec.supernet.stem.delay = 4;
  spec.supernet.head.delay = 4;
  const RanksRun run = TrainOnRanks(spec, 3, OnStages(3), setting);
  ExpectAllFailed(run, NameOf(0) + ": stage 0: out of memory");
}

TEST(RanksFailureTest, ARankThatOwesAReportIsNamed) {
  RanksSetting setting;
  setting.prepare = [](int, TrainingOptions& own, Experiment&) { own.stall_timeout_ms = 2000; };
  setting.filter = [](int from, int, const Message& message) {
    const bool is_owed = from == 1 && message.kind == MessageKind::kFinished;
    return is_owed && message.task.seq == 5 ? Fate::kSwallowed : Fate::kArrives;
  };
  const RanksRun run = TrainOnRanks(SmallSpec(), 3, OnStages(3), setting);
  ExpectAllFailed(run, NameOf(0) + ": nothing has happened for 2 s: " + NameOf(1) +
                           " is not done with subnet 5");
}

TEST(RanksFailureTest, OtherPoliciesAndTooFewStagesAreRefused) {
  MemoryNetworks networks(3, 1);
  const auto network = networks.Connect(0);
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions policy = OnStages(3);
  policy.policy = "1f1b";
  for (TrainingOptions options : {policy, OnStages(2)}) {
    options.network = network.get();
    const auto outcome = Train(experiment, options);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace verbatim
