// The scheduler, driven by random interleavings without threads: every order of finishing tasks
// keeps causality and finishes every subnet.
#include "schedule/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

/// Stages that take tasks from the scheduler and finish them in an order drawn from a seed. Keeps
/// a version per layer, as the trainer does, and checks what each access observes.
class RandomMachine {
 public:
  RandomMachine(const SearchSpace& space, const std::string& policy, int stages,
                const SchedulerOptions& options, std::uint32_t seed)
      : space_(space),
        policy_(*MakePolicy(policy)),
        partition_(*MakeEqualPartition(space, stages)),
        scheduler_(space, *partition_, *policy_, options),
        graph_(space),
        options_(options),
        running_(static_cast<std::size_t>(stages)),
        versions_(space.layers().size(), CausalGraph::kNone),
        random_(seed) {}

  /// Runs `subnets` subnets; false where it gets stuck.
  bool Run(std::int64_t subnets) {
    while (true) {
      while (scheduler_.CanAdmit() && admitted_ < subnets) Admit();
      if (scheduler_.in_flight() == 0) return true;
      StartTasks();
      if (!FinishOne()) return false;
    }
  }

  std::int64_t violations() const { return violations_; }
  std::int64_t in_flight_max() const { return in_flight_max_; }
  std::int64_t out_of_order_microbatches() const { return out_of_order_microbatches_; }
  std::int64_t updates() const { return updates_; }

 private:
  /// A run may leave subnets out: ids ascend, and need not be adjacent.
  static constexpr std::int64_t kStride = 3;

  void Admit() {
    const std::int64_t seq = kStride * admitted_++;
    const Choices choices = DrawUniformChoices(
        space_, RandomKey{3, RandomPurpose::kSampler, 0, 0, static_cast<std::uint32_t>(seq)});
    const auto predecessors = graph_.Add(seq, choices);
    choices_[seq] = choices;
    predecessors_[seq].assign(predecessors.begin(), predecessors.end());
    scheduler_.Admit(seq, choices);
    in_flight_max_ = std::max(in_flight_max_, scheduler_.in_flight());
  }

  void StartTasks() {
    for (std::size_t stage = 0; stage < running_.size(); ++stage) {
      if (running_[stage]) continue;
      running_[stage] = scheduler_.Next(static_cast<int>(stage));
      if (running_[stage]) Observe(static_cast<int>(stage), *running_[stage]);
    }
  }

  /// What the trainer checks at a task's start: versions at the first forward, and that
  /// micro-batches come in order.
  void Observe(int stage, const Task& task) {
    auto& next = next_microbatch_[{stage, task.seq, task.kind}];
    if (task.microbatch != next++) ++out_of_order_microbatches_;
    if (task.kind == TaskKind::kForward && task.microbatch == 0) CheckVersions(stage, task.seq);
  }

  void CheckVersions(int stage, std::int64_t seq) {
    const StageRanges& ranges = partition_->Ranges(choices_[seq]);
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      const Layer& layer = space_.LayerAt(position, choices_[seq]);
      if (layer.IsVersioned() && versions_[layer.id] != predecessors_[seq][position]) {
        ++violations_;
      }
    }
  }

  bool FinishOne() {
    std::vector<int> busy;
    for (std::size_t stage = 0; stage < running_.size(); ++stage) {
      if (running_[stage]) busy.push_back(static_cast<int>(stage));
    }
    if (busy.empty()) return false;
    const int stage = busy[random_() % busy.size()];
    const Task task = *running_[stage];
    running_[stage].reset();
    if (task.kind == TaskKind::kBackward && task.microbatch == options_.microbatches - 1) {
      Update(stage, task.seq);
    }
    if (const auto delivery = scheduler_.Finished(stage, task)) scheduler_.Deliver(*delivery);
    return true;
  }

  void Update(int stage, std::int64_t seq) {
    ++updates_;
    const StageRanges& ranges = partition_->Ranges(choices_[seq]);
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      versions_[space_.LayerAt(position, choices_[seq]).id] = seq;
    }
  }

  const SearchSpace& space_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Partition> partition_;
  Scheduler scheduler_;
  CausalGraph graph_;
  SchedulerOptions options_;
  std::vector<std::optional<Task>> running_;
  std::vector<std::int64_t> versions_;
  std::map<std::int64_t, Choices> choices_;
  std::map<std::int64_t, std::vector<std::int64_t>> predecessors_;
  std::map<std::tuple<int, std::int64_t, TaskKind>, std::int32_t> next_microbatch_;
  std::mt19937 random_;
  std::int64_t admitted_ = 0;
  std::int64_t violations_ = 0;
  std::int64_t in_flight_max_ = 0;
  std::int64_t out_of_order_microbatches_ = 0;
  std::int64_t updates_ = 0;
};

constexpr std::int64_t kSubnets = 60;

TEST(SchedulerTest, CausalRunsKeepCausalityUnderEveryInterleavingTried) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/6, /*candidates=*/3);
  for (const int stages : {1, 2, 3, 5, 8}) {
    for (const std::int32_t microbatches : {1, 3}) {
      for (const std::int64_t in_flight : {1, 2, 4, 16}) {
        for (std::uint32_t seed = 0; seed < 10; ++seed) {
          RandomMachine machine(space, "causal", stages, {microbatches, in_flight}, seed);
          SCOPED_TRACE(testing::Message()
                       << "stages " << stages << ", micro-batches " << microbatches
                       << ", in flight " << in_flight << ", seed " << seed);
          ASSERT_TRUE(machine.Run(kSubnets)) << "stuck";
          ASSERT_EQ(machine.violations(), 0);
          ASSERT_EQ(machine.out_of_order_microbatches(), 0);
          ASSERT_EQ(machine.updates(), kSubnets * stages);
          ASSERT_LE(machine.in_flight_max(), in_flight);
        }
      }
    }
  }
}

TEST(SchedulerTest, CausalRunsDoOverlapSubnetsThatShareNothing) {
  const SearchSpace space = MakeTestSpace(6, 20, /*trained_ends=*/false);
  RandomMachine machine(space, "causal", 4, {1, 8}, /*seed=*/1);
  ASSERT_TRUE(machine.Run(kSubnets));
  EXPECT_EQ(machine.violations(), 0);
  EXPECT_GT(machine.in_flight_max(), 4);
}

TEST(SchedulerTest, AsynchronousRunsBreakCausality) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/6, /*candidates=*/3);
  RandomMachine machine(space, "asynchronous", 4, {2, 8}, /*seed=*/1);
  ASSERT_TRUE(machine.Run(kSubnets));
  EXPECT_GT(machine.violations(), 0);
  EXPECT_EQ(machine.out_of_order_microbatches(), 0);
}

TEST(SchedulerTest, SequentialStartsASubnetOnlyAfterTheOneBefore) {
  const SearchSpace space = MakeTestSpace(3, 2, /*trained_ends=*/false);
  const auto policy = *MakePolicy("sequential");
  const auto partition = *MakeEqualPartition(space, 2);
  Scheduler scheduler(space, *partition, *policy, {/*microbatches=*/1, /*in_flight_max=*/3});
  for (std::int64_t seq = 0; seq < 3; ++seq) scheduler.Admit(seq, {2, 2, 2});
  EXPECT_FALSE(scheduler.CanAdmit());
  for (std::int64_t seq = 0; seq < 3; ++seq) {
    // Forward through both stages, backward through both; in between nothing else is ready.
    const Task forward{TaskKind::kForward, seq, 0};
    const Task backward{TaskKind::kBackward, seq, 0};
    const std::vector<std::pair<int, Task>> path = {
        {0, forward}, {1, forward}, {1, backward}, {0, backward}};
    for (const auto& [stage, task] : path) {
      EXPECT_FALSE(scheduler.HasReady(1 - stage));
      ASSERT_EQ(scheduler.Next(stage), task);
      EXPECT_EQ(scheduler.Next(stage), std::nullopt);
      if (const auto delivery = scheduler.Finished(stage, task)) scheduler.Deliver(*delivery);
    }
    EXPECT_EQ(scheduler.LowestUnfinished(), seq + 1);
  }
  EXPECT_EQ(scheduler.in_flight(), 0);
}

TEST(SchedulerDeathTest, AdmissionIsInSequenceOrder) {
  const SearchSpace space = MakeTestSpace(1, 1);
  const auto policy = *MakePolicy("causal");
  const auto partition = *MakeEqualPartition(space, 1);
  Scheduler scheduler(space, *partition, *policy, {});
  scheduler.Admit(1, {0});
  EXPECT_DEATH(scheduler.Admit(1, {0}), "CHECK failed");
  EXPECT_DEATH(scheduler.Admit(0, {0}), "CHECK failed");
}

}  // namespace
}  // namespace verbatim
