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
/// a version per layer, as the trainer does, and checks what each access observes, and that it has
/// arrived.
class RandomMachine {
 public:
  RandomMachine(const SearchSpace& space, const std::string& policy, int stages,
                const SchedulerOptions& options, std::uint32_t seed,
                const std::string& partition = "equal")
      : space_(space),
        costs_(MakeTestCosts(space)),
        policy_(*MakePolicy(policy)),
        partition_(*MakePartition(partition, space, costs_, stages)),
        scheduler_(space, *partition_, *policy_, options),
        graph_(space),
        options_(options),
        running_(static_cast<std::size_t>(stages)),
        versions_(space.layers().size(), {CausalPredecessors::kNone}),
        random_(seed) {}

  /// Runs `subnets` subnets; false where it gets stuck.
  bool Run(std::int64_t subnets) {
    while (true) {
      while (scheduler_.CanAdmit() && admitted_ < subnets) Admit();
      if (scheduler_.in_flight() == 0) return true;
      StartTasks();
      if (!ArriveOrFinishOne()) return false;
    }
  }

  std::int64_t violations() const { return violations_; }
  std::int64_t in_flight_max() const { return in_flight_max_; }
  std::int64_t out_of_order_microbatches() const { return out_of_order_microbatches_; }
  std::int64_t updates() const { return updates_; }
  std::int64_t versions_moved() const { return versions_moved_; }
  std::int64_t versions_arrived() const { return versions_arrived_; }

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
    scheduler_.Admit(seq, choices, under_way_);
    in_flight_max_ = std::max(in_flight_max_, scheduler_.in_flight());
  }

  void StartTasks() {
    for (std::size_t stage = 0; stage < running_.size(); ++stage) {
      if (running_[stage]) continue;
      running_[stage] = scheduler_.Next(static_cast<int>(stage));
      if (running_[stage]) Observe(static_cast<int>(stage), *running_[stage]);
    }
  }

  /// What the trainer checks at a task's start: versions at the first forward and at the update,
  /// and that micro-batches come in order.
  void Observe(int stage, const Task& task) {
    if (task.kind == TaskKind::kUpdate) {
      CheckVersions(stage, task, &CausalPredecessors::base);
      return;
    }
    auto& next = next_microbatch_[{stage, task.seq, task.kind}];
    if (task.microbatch != next++) ++out_of_order_microbatches_;
    if (task.kind == TaskKind::kForward && task.microbatch == 0) {
      CheckVersions(stage, task, &CausalPredecessors::read);
    }
  }

  /// A read takes the newest version that its delay allows, an update the newest of all.
  std::int64_t Observed(const Layer& layer, const Task& task) const {
    const std::vector<std::int64_t>& versions = versions_[layer.id];
    if (task.kind == TaskKind::kUpdate || layer.delay == 0) return versions.back();
    std::int64_t observed = CausalPredecessors::kNone;
    for (const std::int64_t version : versions) {
      if (version < task.seq - layer.delay) observed = std::max(observed, version);
    }
    return observed;
  }

  void CheckVersions(int stage, const Task& task, std::int64_t CausalPredecessors::*predecessor) {
    const StageRanges ranges = partition_->Ranges(choices_[task.seq]);
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      const Layer& layer = space_.LayerAt(position, choices_[task.seq]);
      const CausalPredecessors& predecessors = predecessors_[task.seq][position];
      const std::int64_t expected = predecessors.*predecessor;
      if (!layer.IsVersioned()) continue;
      if (Observed(layer, task) != expected) ++violations_;
      if (expected < 0 || written_on_[{layer.id, expected}] == stage) continue;
      if (!arrived_.contains({task.seq, layer.id, expected})) ++violations_;
      const bool is_counted = task.kind == TaskKind::kUpdate && predecessors.read == expected;
      if (!is_counted) ++versions_moved_;
    }
  }

  /// One of the things that are under way: an arrival or the end of a task.
  bool ArriveOrFinishOne() {
    std::vector<int> busy;
    for (std::size_t stage = 0; stage < running_.size(); ++stage) {
      if (running_[stage]) busy.push_back(static_cast<int>(stage));
    }
    const std::size_t events = busy.size() + under_way_.size();
    if (events == 0) return false;
    const std::size_t event = random_() % events;
    if (event < busy.size()) {
      Finish(busy[event]);
    } else {
      Arrive(event - busy.size());
    }
    return true;
  }

  /// Between two stages, what sets out first arrives first.
  void Arrive(std::size_t chosen) {
    const auto first = std::find_if(under_way_.begin(), under_way_.end(), [&](const Delivery& d) {
      return d.from == under_way_[chosen].from && d.to == under_way_[chosen].to;
    });
    const Delivery delivery = *first;
    under_way_.erase(first);
    if (delivery.kind == Delivery::Kind::kVersion) {
      EXPECT_NE(delivery.from, delivery.to);
      arrived_.emplace(delivery.task.seq, delivery.layer, delivery.version);
      ++versions_arrived_;
    }
    scheduler_.Deliver(delivery);
  }

  void Finish(int stage) {
    const Task task = *running_[stage];
    running_[stage].reset();
    if (task.kind == TaskKind::kUpdate) Update(stage, task.seq);
    scheduler_.Finished(stage, task, under_way_);
  }

  void Update(int stage, std::int64_t seq) {
    ++updates_;
    const StageRanges ranges = partition_->Ranges(choices_[seq]);
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      const Layer& layer = space_.LayerAt(position, choices_[seq]);
      if (!layer.IsVersioned()) continue;
      versions_[layer.id].push_back(seq);
      written_on_[{layer.id, seq}] = stage;
    }
  }

  const SearchSpace& space_;
  CostTable costs_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Partition> partition_;
  Scheduler scheduler_;
  CausalGraph graph_;
  SchedulerOptions options_;
  std::vector<std::optional<Task>> running_;
  std::vector<std::vector<std::int64_t>> versions_;         ///< by layer, as they were written
  std::map<std::pair<int, std::int64_t>, int> written_on_;  ///< stage, by layer and version
  /// By seq, layer and version: what came from another stage.
  std::set<std::tuple<std::int64_t, int, std::int64_t>> arrived_;
  std::vector<Delivery> under_way_;
  std::map<std::int64_t, Choices> choices_;
  std::map<std::int64_t, std::vector<CausalPredecessors>> predecessors_;
  std::map<std::tuple<int, std::int64_t, TaskKind>, std::int32_t> next_microbatch_;
  std::mt19937 random_;
  std::int64_t admitted_ = 0;
  std::int64_t violations_ = 0;
  std::int64_t in_flight_max_ = 0;
  std::int64_t out_of_order_microbatches_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t versions_moved_ = 0;    ///< as the accesses show it
  std::int64_t versions_arrived_ = 0;  ///< as the scheduler announced it
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
          ASSERT_EQ(machine.versions_arrived(), 0) << "the equal partition moves nothing";
          ASSERT_LE(machine.in_flight_max(), in_flight);
        }
      }
    }
  }
}

TEST(SchedulerTest, DelaysAndMovingLayersKeepCausalityToo) {
  for (const std::int64_t delay : {0, 1, 2, 5, 100}) {
    const SearchSpace space =
        MakeTestSpace(/*blocks=*/6, /*candidates=*/3, /*trained_ends=*/true, delay);
    for (const int stages : {2, 3, 5}) {
      for (std::uint32_t seed = 0; seed < 20; ++seed) {
        RandomMachine machine(space, "causal", stages, {/*microbatches=*/2, /*in_flight=*/8}, seed,
                              "balanced");
        SCOPED_TRACE(testing::Message()
                     << "delay " << delay << ", stages " << stages << ", seed " << seed);
        ASSERT_TRUE(machine.Run(kSubnets)) << "stuck";
        ASSERT_EQ(machine.violations(), 0);
        ASSERT_EQ(machine.out_of_order_microbatches(), 0);
        ASSERT_GT(machine.versions_arrived(), 0);
        ASSERT_EQ(machine.versions_arrived(), machine.versions_moved());
      }
    }
  }
}

TEST(SchedulerTest, PoliciesOfOneSubnetWaitForVersionsOnTheirWay) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/6, /*candidates=*/3, /*trained_ends=*/true,
                                          /*delay=*/2);
  for (const char* policy : {"sequential", "gpipe", "1f1b"}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      RandomMachine machine(space, policy, /*stages=*/4, {/*microbatches=*/3, /*in_flight=*/8},
                            seed, "balanced");
      SCOPED_TRACE(testing::Message() << policy << ", seed " << seed);
      ASSERT_TRUE(machine.Run(kSubnets)) << "stuck";
      ASSERT_EQ(machine.violations(), 0);
      ASSERT_EQ(machine.out_of_order_microbatches(), 0);
      ASSERT_GT(machine.versions_arrived(), 0);
    }
  }
}

TEST(SchedulerTest, PoliciesThatIgnoreVersionsFinishAllTheSame) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/6, /*candidates=*/3, /*trained_ends=*/true,
                                          /*delay=*/2);
  for (const char* policy : {"pipedream", "asynchronous"}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      RandomMachine machine(space, policy, /*stages=*/4, {/*microbatches=*/3, /*in_flight=*/8},
                            seed, "balanced");
      SCOPED_TRACE(testing::Message() << policy << ", seed " << seed);
      ASSERT_TRUE(machine.Run(kSubnets)) << "stuck";
      ASSERT_EQ(machine.updates(), kSubnets * 4);
      ASSERT_EQ(machine.out_of_order_microbatches(), 0);
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
  const auto partition = *MakePartition("equal", space, MakeTestCosts(space), 2);
  Scheduler scheduler(space, *partition, *policy, {/*microbatches=*/1, /*in_flight_max=*/3});
  std::vector<Delivery> deliveries;
  for (std::int64_t seq = 0; seq < 3; ++seq) scheduler.Admit(seq, {2, 2, 2}, deliveries);
  EXPECT_TRUE(deliveries.empty());
  EXPECT_FALSE(scheduler.CanAdmit());
  for (std::int64_t seq = 0; seq < 3; ++seq) {
    // Forward through both stages, backward and update through both, one task at a time.
    const Task forward{TaskKind::kForward, seq, 0};
    const Task backward{TaskKind::kBackward, seq, 0};
    const Task update{TaskKind::kUpdate, seq, 0};
    const std::vector<std::pair<int, Task>> path = {{0, forward}, {1, forward},  {1, backward},
                                                    {1, update},  {0, backward}, {0, update}};
    for (const auto& [stage, task] : path) {
      ASSERT_EQ(scheduler.Next(stage), task);
      EXPECT_FALSE(scheduler.HasReady(1 - stage)) << "one task at a time";
      const bool is_last = scheduler.Finished(stage, task, deliveries);
      EXPECT_EQ(is_last, stage == 0 && task == update);
      for (const Delivery& delivery : deliveries) scheduler.Deliver(delivery);
      deliveries.clear();
    }
    EXPECT_EQ(scheduler.LowestUnfinished(), seq + 1);
  }
  EXPECT_EQ(scheduler.in_flight(), 0);
}

TEST(SchedulerDeathTest, AdmissionIsInSequenceOrder) {
  const SearchSpace space = MakeTestSpace(1, 1);
  const auto policy = *MakePolicy("causal");
  const auto partition = *MakePartition("equal", space, MakeTestCosts(space), 1);
  Scheduler scheduler(space, *partition, *policy, {});
  std::vector<Delivery> deliveries;
  scheduler.Admit(1, {0}, deliveries);
  EXPECT_DEATH(scheduler.Admit(1, {0}, deliveries), "CHECK failed");
  EXPECT_DEATH(scheduler.Admit(0, {0}, deliveries), "CHECK failed");
}

}  // namespace
}  // namespace verbatim
