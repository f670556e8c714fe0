// One rank's scheduler by itself: what it sends where, what waits for an admission, and that it
// refuses what no rank of its run would send. Whole runs: tests/schedule/ranks/.
#include "schedule/rank_scheduler.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/schedule/moving_partition.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

constexpr int kLinear = 1;  ///< of the only block
constexpr int kHead = 3;

/// Stem, one block of a linear layer and a skip, and head, on three stages of three ranks: one
/// position each.
class RankSchedulerTest : public ::testing::Test {
 protected:
  RankScheduler Make(int rank) {
    return RankScheduler(space_, *partition_, *policy_, {/*microbatches=*/2, /*in_flight_max=*/2},
                         *Placement::Make(3, 3), rank);
  }

  static Delivery TaskOn(int stage, TaskKind kind, std::int64_t seq, std::int32_t microbatch) {
    return {.to = stage, .task = {kind, seq, microbatch}};
  }
  static void Execute(RankScheduler& scheduler, int stage, const Task& task,
                      std::vector<RankMessage>& messages) {
    ASSERT_EQ(scheduler.Next(stage), task);
    scheduler.Finished(stage, task, messages);
  }

  const SearchSpace space_ = MakeTestSpace(/*blocks=*/1, /*candidates=*/1);
  const std::unique_ptr<Policy> policy_ = *MakePolicy("causal");
  const std::unique_ptr<Partition> partition_ =
      *MakePartition("equal", space_, MakeTestCosts(space_), 3);
  std::vector<RankMessage> messages_;
};

TEST_F(RankSchedulerTest, RankZeroTellsTheOthersOfAnAdmission) {
  RankScheduler scheduler = Make(0);
  ASSERT_TRUE(scheduler.Admit(0, {0}, messages_));
  ASSERT_EQ(messages_.size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(messages_[i].kind, RankMessage::Kind::kAdmitted);
    EXPECT_EQ(messages_[i].to, i + 1);
    EXPECT_EQ(messages_[i].seq, 0);
  }
  ASSERT_TRUE(scheduler.Admit(1, {0}, messages_));
  EXPECT_FALSE(scheduler.CanAdmit());
  EXPECT_EQ(scheduler.in_flight(), 2);
}

TEST_F(RankSchedulerTest, WhatAStageGivesToTheNextGoesToItsRank) {
  RankScheduler scheduler = Make(0);
  ASSERT_TRUE(scheduler.Admit(0, {0}, messages_));
  messages_.clear();
  Execute(scheduler, 0, {TaskKind::kForward, 0, 0}, messages_);
  ASSERT_EQ(messages_.size(), 1);
  EXPECT_EQ(messages_[0].kind, RankMessage::Kind::kDelivery);
  EXPECT_EQ(messages_[0].to, 1);
  EXPECT_EQ(messages_[0].delivery.to, 1);
  EXPECT_EQ(messages_[0].delivery.task, (Task{TaskKind::kForward, 0, 0}));
}

TEST_F(RankSchedulerTest, ASubnetIsFinishedWhenAllRanksSaySo) {
  RankScheduler scheduler = Make(0);
  ASSERT_TRUE(scheduler.Admit(0, {0}, messages_));
  bool is_finished = true;
  ASSERT_TRUE(scheduler.PartFinished(0, 2, is_finished));
  EXPECT_FALSE(is_finished);
  EXPECT_FALSE(scheduler.PartFinished(0, 2, is_finished)) << "twice";
  EXPECT_FALSE(scheduler.PartFinished(0, 3, is_finished)) << "no such rank";
  EXPECT_FALSE(scheduler.PartFinished(1, 1, is_finished)) << "not in flight";
  EXPECT_FALSE(scheduler.PartFinished(0, 0, is_finished)) << "that is this rank";
  ASSERT_TRUE(scheduler.PartFinished(0, 1, is_finished));
  EXPECT_FALSE(is_finished);
  for (std::int32_t m = 0; m < 2; ++m) {
    Execute(scheduler, 0, {TaskKind::kForward, 0, m}, messages_);
    ASSERT_TRUE(scheduler.Deliver(TaskOn(0, TaskKind::kBackward, 0, m), 1));
  }
  for (std::int32_t m = 0; m < 2; ++m) {
    Execute(scheduler, 0, {TaskKind::kBackward, 0, m}, messages_);
  }
  const Task update{TaskKind::kUpdate, 0, 1};
  ASSERT_EQ(scheduler.Next(0), update);
  EXPECT_TRUE(scheduler.Finished(0, update, messages_));
  EXPECT_EQ(scheduler.in_flight(), 0);
}

TEST_F(RankSchedulerTest, AnotherRankTellsRankZeroOfItsPart) {
  RankScheduler scheduler = Make(2);
  ASSERT_TRUE(scheduler.Admit(4, {0}, messages_));
  EXPECT_TRUE(messages_.empty());
  for (std::int32_t m = 0; m < 2; ++m) {
    ASSERT_TRUE(scheduler.Deliver(TaskOn(2, TaskKind::kForward, 4, m), 1));
    Execute(scheduler, 2, {TaskKind::kForward, 4, m}, messages_);
    Execute(scheduler, 2, {TaskKind::kBackward, 4, m}, messages_);
  }
  const Task update{TaskKind::kUpdate, 4, 1};
  messages_.clear();
  ASSERT_EQ(scheduler.Next(2), update);
  EXPECT_TRUE(scheduler.Finished(2, update, messages_));
  ASSERT_EQ(messages_.size(), 1);
  EXPECT_EQ(messages_[0].kind, RankMessage::Kind::kFinished);
  EXPECT_EQ(messages_[0].to, 0);
  EXPECT_EQ(messages_[0].seq, 4);
}

TEST_F(RankSchedulerTest, ADeliveryWaitsForItsSubnetsAdmission) {
  RankScheduler scheduler = Make(2);
  ASSERT_TRUE(scheduler.Deliver(TaskOn(2, TaskKind::kForward, 3, 0), 1));
  ASSERT_TRUE(scheduler.Deliver(TaskOn(2, TaskKind::kForward, 3, 1), 1));
  EXPECT_FALSE(scheduler.HasReady(2));
  ASSERT_TRUE(scheduler.Admit(3, {0}, messages_));
  EXPECT_EQ(scheduler.Next(2), (Task{TaskKind::kForward, 3, 0}));
}

TEST_F(RankSchedulerTest, KnowsWhoHoldsALayer) {
  RankScheduler scheduler = Make(1);
  EXPECT_EQ(scheduler.HolderOf(kLinear), -1);
  EXPECT_EQ(scheduler.LastUserOf(kLinear), -1);
  ASSERT_TRUE(scheduler.Admit(5, {0}, messages_));
  ASSERT_TRUE(scheduler.Admit(6, {1}, messages_)) << "takes the skip";
  EXPECT_EQ(scheduler.HolderOf(kLinear), 1);
  EXPECT_EQ(scheduler.LastUserOf(kLinear), 5);
  EXPECT_EQ(scheduler.HolderOf(kLinear + 1), -1) << "a skip has no versions";
  EXPECT_EQ(scheduler.HolderOf(kHead), 2);
  EXPECT_EQ(scheduler.LastUserOf(kHead), 6);
}

TEST_F(RankSchedulerTest, RefusesTasksThatNobodyWouldSend) {
  RankScheduler scheduler = Make(1);
  ASSERT_TRUE(scheduler.Admit(0, {0}, messages_));
  ASSERT_TRUE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, 0, 0), 0));
  struct Refused {
    const char* why;
    Delivery delivery;
    int from;
  };
  const Refused cases[] = {
      {"again", TaskOn(1, TaskKind::kForward, 0, 0), 0},
      {"by the next stage's rank", TaskOn(1, TaskKind::kForward, 0, 1), 2},
      {"by itself", TaskOn(1, TaskKind::kForward, 0, 1), 1},
      {"out of order", TaskOn(1, TaskKind::kBackward, 0, 1), 2},
      {"beyond the micro-batches", TaskOn(1, TaskKind::kBackward, 0, 2), 2},
      {"a negative one", TaskOn(1, TaskKind::kBackward, 0, -1), 2},
      {"an update", TaskOn(1, TaskKind::kUpdate, 0, 0), 0},
      {"an unknown kind", TaskOn(1, static_cast<TaskKind>(7), 0, 0), 0},
      {"another rank's stage", TaskOn(2, TaskKind::kForward, 0, 0), 0},
      {"no stage", TaskOn(3, TaskKind::kForward, 0, 0), 0},
      {"no stage", TaskOn(-1, TaskKind::kForward, 0, 0), 0},
      {"a subnet that is not in flight", TaskOn(1, TaskKind::kForward, -1, 0), 0},
  };
  for (const Refused& refused : cases) {
    EXPECT_FALSE(scheduler.Deliver(refused.delivery, refused.from)) << refused.why;
  }
  EXPECT_TRUE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, 0, 1), 0)) << "still as before";
}

TEST_F(RankSchedulerTest, RefusesWhatWaitedForASubnetThatItDoesNotFit) {
  RankScheduler scheduler = Make(1);
  ASSERT_TRUE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, 2, 1), 0)) << "for now";
  EXPECT_FALSE(scheduler.Admit(2, {0}, messages_)) << "micro-batch 0 comes first";
}

TEST_F(RankSchedulerTest, RefusesMoreEarlySubnetsThanMayBeInFlight) {
  RankScheduler scheduler = Make(1);
  for (std::int64_t seq = 0; seq < 2; ++seq) {
    ASSERT_TRUE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, seq, 0), 0));
  }
  EXPECT_FALSE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, 2, 0), 0));
  EXPECT_FALSE(Make(0).Deliver(TaskOn(0, TaskKind::kBackward, 0, 0), 1))
      << "rank 0 knows every subnet first";
}

TEST_F(RankSchedulerTest, RefusesAdmissionsOutOfTurn) {
  RankScheduler scheduler = Make(1);
  ASSERT_TRUE(scheduler.Admit(3, {0}, messages_));
  EXPECT_FALSE(scheduler.Admit(3, {0}, messages_)) << "twice";
  EXPECT_FALSE(scheduler.Admit(2, {0}, messages_)) << "backwards";
  ASSERT_TRUE(scheduler.Deliver(TaskOn(1, TaskKind::kForward, 4, 0), 0));
  EXPECT_FALSE(scheduler.Admit(5, {0}, messages_)) << "4 is under way";
  ASSERT_TRUE(scheduler.Admit(4, {0}, messages_));
  EXPECT_FALSE(scheduler.Admit(5, {0}, messages_)) << "more than may be in flight";
}

/// On MovingPartition's space: the first block's layer moves between ranks 0 and 1.
class MovingLayerTest : public ::testing::Test {
 protected:
  static constexpr int kMoving = 1;

  RankScheduler Make(int rank) {
    return RankScheduler(space_, partition_, *policy_, {/*microbatches=*/1, /*in_flight_max=*/4},
                         *Placement::Make(2, 2), rank);
  }
  static Delivery MovingFor(std::int64_t seq, std::int64_t version) {
    return {Delivery::Kind::kVersion, 0, 1, {TaskKind::kForward, seq, 0}, kMoving, version};
  }
  /// Runs subnet 0 on rank 0, where it uses the layer, to its update; of others what is ready.
  void RunFirst(RankScheduler& scheduler) {
    ASSERT_TRUE(scheduler.Deliver({.to = 0, .task = {TaskKind::kBackward, 0, 0}}, 1));
    while (const std::optional<Task> task = scheduler.Next(0)) {
      scheduler.Finished(0, *task, messages_);
    }
  }
  std::vector<Delivery> VersionsSent() const {
    std::vector<Delivery> versions;
    for (const RankMessage& message : messages_) {
      const bool is_version = message.kind == RankMessage::Kind::kDelivery &&
                              message.delivery.kind == Delivery::Kind::kVersion;
      if (is_version) versions.push_back(message.delivery);
    }
    return versions;
  }

  const SearchSpace space_ = MakeTestSpace(/*blocks=*/2, /*candidates=*/1, /*trained_ends=*/false);
  const MovingPartition partition_{};
  const std::unique_ptr<Policy> policy_ = *MakePolicy("causal");
  const std::vector<std::uint16_t> here_ = {0, 1};   ///< on rank 0
  const std::vector<std::uint16_t> there_ = {0, 0};  ///< on rank 1
  std::vector<RankMessage> messages_;
};

TEST_F(MovingLayerTest, AVersionSetsOutWhenItIsWritten) {
  RankScheduler writer = Make(0);
  ASSERT_TRUE(writer.Admit(0, here_, messages_));
  ASSERT_TRUE(writer.Admit(1, there_, messages_));
  EXPECT_TRUE(VersionsSent().empty());
  RunFirst(writer);
  ASSERT_EQ(VersionsSent().size(), 1);
  EXPECT_EQ(VersionsSent()[0].version, 0);
  EXPECT_EQ(VersionsSent()[0].layer, kMoving);
  EXPECT_TRUE(VersionsSent()[0].is_base);
  EXPECT_EQ(writer.versions_moved(), 1);
  EXPECT_EQ(writer.HolderOf(kMoving), 1);
}

TEST_F(MovingLayerTest, AVersionSetsOutWhenItsReaderIsAdmitted) {
  RankScheduler writer = Make(0);
  ASSERT_TRUE(writer.Admit(0, here_, messages_));
  RunFirst(writer);
  EXPECT_TRUE(VersionsSent().empty());
  ASSERT_TRUE(writer.Admit(1, there_, messages_));
  ASSERT_EQ(VersionsSent().size(), 1);
  EXPECT_EQ(VersionsSent()[0].task.seq, 1);
}

TEST_F(MovingLayerTest, ASubnetWaitsForAVersionWrittenElsewhere) {
  for (const bool is_early : {false, true}) {
    RankScheduler reader = Make(1);
    ASSERT_TRUE(reader.Admit(0, here_, messages_));
    if (is_early) {
      ASSERT_TRUE(reader.Deliver(MovingFor(1, 0), 0));
    }
    ASSERT_TRUE(reader.Admit(1, there_, messages_));
    ASSERT_TRUE(reader.Deliver({.to = 1, .task = {TaskKind::kForward, 1, 0}}, 0));
    EXPECT_EQ(reader.HasReady(1), is_early);
    if (!is_early) {
      ASSERT_TRUE(reader.Deliver(MovingFor(1, 0), 0));
    }
    EXPECT_EQ(reader.Next(1), (Task{TaskKind::kForward, 1, 0}));
  }
}

TEST_F(MovingLayerTest, RefusesVersionsThatNobodyAwaits) {
  RankScheduler reader = Make(1);
  ASSERT_TRUE(reader.Admit(0, here_, messages_));
  ASSERT_TRUE(reader.Admit(1, there_, messages_));
  Delivery another_layer = MovingFor(1, 0);
  another_layer.layer = kMoving + 2;
  EXPECT_FALSE(reader.Deliver(another_layer, 0));
  another_layer.layer = 1000;
  EXPECT_FALSE(reader.Deliver(another_layer, 0));
  another_layer.layer = -1;
  EXPECT_FALSE(reader.Deliver(another_layer, 0));
  EXPECT_FALSE(reader.Deliver(MovingFor(1, -1), 0)) << "another version";
  EXPECT_FALSE(reader.Deliver(MovingFor(0, -1), 0)) << "another subnet";
  EXPECT_FALSE(reader.Deliver(MovingFor(1, 0), 1)) << "from another rank";
  Delivery update = MovingFor(1, 0);
  update.task.kind = TaskKind::kUpdate;
  EXPECT_FALSE(reader.Deliver(update, 0)) << "it reads and updates the same version";
  ASSERT_TRUE(reader.Deliver(MovingFor(1, 0), 0));
  EXPECT_FALSE(reader.Deliver(MovingFor(1, 0), 0)) << "twice";
}

}  // namespace
}  // namespace verbatim
