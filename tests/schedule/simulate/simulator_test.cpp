// The simulator on cases that can be worked out by hand, and what its reports promise.
#include "schedule/simulate/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tests/schedule/simulate/simulated_space.h"

namespace verbatim {
namespace {

SimulatedRun Flushing(const std::string& policy, int stages, std::int32_t microbatches) {
  SimulatedRun run{.blocks = 8, .candidates = 3, .stages = stages, .policy = policy};
  run.options = {.subnets = 5, .microbatches = microbatches, .in_flight_max = 4};
  return run;
}

TEST(SimulatorTest, FlushingPoliciesHaveTheirKnownBubble) {
  for (const std::string policy : {"gpipe", "1f1b"}) {
    for (const int stages : {1, 2, 4, 8}) {
      for (const std::int32_t m : {1, 2, 4, 8}) {
        SCOPED_TRACE(policy + " on " + std::to_string(stages) + " stages, " + std::to_string(m));
        const SimulationReport report = SimulateRun(Flushing(policy, stages, m));
        const double idle = stages - 1.0;
        EXPECT_DOUBLE_EQ(report.bubble(), idle / (m + idle));
        // Eight blocks of 1 + 2 a subnet, cut into m parts that pass `stages` stages.
        EXPECT_DOUBLE_EQ(report.makespan, 5 * 24.0 / stages / m * (m + stages - 1));
        EXPECT_EQ(report.work, 5 * 24.0);
        EXPECT_EQ(report.violations, 0);
      }
    }
  }
}

TEST(SimulatorTest, OneForwardOneBackwardHoldsLessThanGPipe) {
  const SimulationReport gpipe = SimulateRun(Flushing("gpipe", 4, 8));
  const SimulationReport flush = SimulateRun(Flushing("1f1b", 4, 8));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(gpipe.stages[stage].held_max, 8);
    EXPECT_EQ(flush.stages[stage].held_max, 4 - stage);
    EXPECT_EQ(gpipe.stages[stage].activation_bytes * (4 - stage),
              flush.stages[stage].activation_bytes * 8);
  }
}

TEST(SimulatorTest, SequentialGainsNothingFromStages) {
  const SimulationReport report = SimulateRun(Flushing("sequential", 4, 2));
  EXPECT_DOUBLE_EQ(report.speedup(), 1.0);
  EXPECT_EQ(report.violations, 0);
}

TEST(SimulatorTest, PipeDreamFillsThePipelineAndStashesWeights) {
  SimulatedRun run{.blocks = 8, .candidates = 1, .stages = 4, .policy = "pipedream"};
  run.options = {.subnets = 200, .in_flight_max = 4};
  const SimulationReport report = SimulateRun(run);
  EXPECT_GT(report.speedup(), 3.9);
  EXPECT_GT(report.violations, 0);
  run.policy = "causal";
  const SimulationReport causal = SimulateRun(run);
  EXPECT_NEAR(causal.speedup(), 1.0, 0.1) << "every subnet shares every layer";
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(report.stages[stage].held_max, 4 - stage);
    // Two blocks with 80 bytes of parameters each on a stage: as many versions as subnets held.
    const std::int64_t stashed =
        report.stages[stage].weight_bytes - causal.stages[stage].weight_bytes;
    EXPECT_EQ(stashed, 2 * 80 * (4 - stage - 1)) << "stage " << stage;
  }
}

TEST(SimulatorTest, OnlyPoliciesThatAreCausalHaveNoViolations) {
  for (const PolicyKind& kind : PolicyKinds()) {
    for (const std::string partition : {"blocks", "balanced"}) {
      for (const std::int64_t delay : {0, 3}) {
        if (!kind.is_causal && partition == "balanced") continue;
        SimulatedRun run{.blocks = 12,
                         .candidates = 4,
                         .stages = 4,
                         .policy = std::string(kind.name),
                         .trained_ends = true,
                         .delay = delay,
                         .partition = partition};
        run.options = {.subnets = 100, .microbatches = 3, .in_flight_max = 8};
        const SimulationReport report = SimulateRun(run);
        EXPECT_EQ(report.violations == 0, kind.is_causal) << kind.name << ", " << partition;
        EXPECT_EQ(report.accesses, 100 * 14);
        if (kind.is_causal) {
          EXPECT_GE(report.makespan, report.bound() * (1 - 1e-6)) << kind.name;
        }
      }
    }
  }
}

/// One stage; five subnets, one at a time.
SimulatedRun OneStage(const std::string& recompute, std::int32_t microbatches) {
  SimulatedRun run{
      .blocks = 4, .candidates = 3, .stages = 1, .policy = "gpipe", .recompute = recompute};
  run.options = {.subnets = 5, .microbatches = microbatches, .in_flight_max = 1};
  return run;
}

TEST(SimulatorTest, WhatIsComputedAgainTakesItsForwardOnceMore) {
  const SimulationReport plain = SimulateRun(OneStage("none", 2));
  EXPECT_EQ(plain.recompute, 0.0);
  for (const auto& [ranges, blocks] : {std::pair("all", 4), {"1-4", 4}, {"2-3", 2}, {"1,4", 2}}) {
    SCOPED_TRACE(ranges);
    const SimulationReport report = SimulateRun(OneStage(ranges, 2));
    EXPECT_DOUBLE_EQ(report.work, plain.work);
    EXPECT_DOUBLE_EQ(report.recompute, 5.0 * blocks);
    EXPECT_DOUBLE_EQ(report.makespan, plain.makespan + 5.0 * blocks);
    EXPECT_DOUBLE_EQ(report.speedup(), report.work / (report.work + report.recompute));
    EXPECT_DOUBLE_EQ(report.bubble(), 0.0);
    ASSERT_EQ(report.stages.size(), 1U);
    EXPECT_DOUBLE_EQ(report.stages[0].recompute, 5.0 * blocks);
    EXPECT_DOUBLE_EQ(report.stages[0].backward, plain.stages[0].backward + 5.0 * blocks);
    EXPECT_DOUBLE_EQ(report.stages[0].forward, plain.stages[0].forward);
    EXPECT_EQ(report.violations, 0);
  }
}

TEST(SimulatorTest, ARangeKeepsItsInputAndIsWholeWhileItIsComputed) {
  // Two rows a micro-batch. Stem and blocks keep their inputs of 4 floats, 32 bytes; the head its
  // own, as many features and 3 classes: 88.
  struct Case {
    const char* ranges;
    std::int64_t kept;
    std::int64_t computed;  ///< while one is computed
  };
  const Case cases[] = {{"none", 32 + 4 * 32 + 88, 32 + 4 * 32 + 88},
                        {"all", 32 + 4 * 32 + 88, 32 + 4 * 32 + 88},  // no more than inputs
                        {"1-4", 32 + 32 + 88, 32 + 4 * 32},
                        {"1-2,3-4", 32 + 2 * 32 + 88, 32 + 2 * 32 + 88},
                        {"3-4", 32 + 2 * 32 + 32 + 88, 32 + 2 * 32 + 32 + 88}};
  for (const Case& c : cases) {
    for (const std::int32_t microbatches : {1, 3}) {
      SCOPED_TRACE(std::string(c.ranges) + ", " + std::to_string(microbatches));
      const StageUse use = SimulateRun(OneStage(c.ranges, microbatches)).stages.at(0);
      EXPECT_EQ(use.held_max, microbatches);
      EXPECT_EQ(use.activation_bytes, (microbatches - 1) * c.kept + std::max(c.kept, c.computed));
      EXPECT_EQ(use.whole_activation_bytes, microbatches * (32 + 4 * 32 + 88));
    }
  }
}

/// Two blocks on two stages; one subnet, two micro-batches, the second of a quarter.
SimulatedRun TwoStages() {
  SimulatedRun run{.blocks = 2, .candidates = 1, .stages = 2};
  run.options = {.subnets = 1, .microbatches = 2, .last_microbatch = 0.25, .timeline_end = 1};
  return run;
}

TEST(SimulatorTest, ASmallerLastMicrobatchTakesLess) {
  const SimulationReport report = SimulateRun(TwoStages());
  // Each block costs 0.5 and 1 for a whole micro-batch.
  struct Expected {
    TaskKind kind;
    std::int32_t microbatch;
    int stage;
    double begin;
    double end;
  };
  const Expected expected[] = {
      {TaskKind::kForward, 0, 0, 0, 0.5},        {TaskKind::kForward, 1, 0, 0.5, 0.625},
      {TaskKind::kForward, 0, 1, 0.5, 1.0},      {TaskKind::kBackward, 0, 1, 1.0, 2.0},
      {TaskKind::kBackward, 0, 0, 2.0, 3.0},     {TaskKind::kForward, 1, 1, 2.0, 2.125},
      {TaskKind::kBackward, 1, 1, 2.125, 2.375}, {TaskKind::kUpdate, 1, 1, 2.375, 2.375},
      {TaskKind::kBackward, 1, 0, 3.0, 3.25},    {TaskKind::kUpdate, 1, 0, 3.25, 3.25}};
  ASSERT_EQ(report.timeline.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const Expected& e = expected[i];
    const SimulatedTask wanted{{e.kind, 0, e.microbatch}, e.stage, e.begin, e.end};
    EXPECT_EQ(report.timeline[i], wanted) << "task " << i;
  }
  EXPECT_DOUBLE_EQ(report.makespan, 3.25);
  EXPECT_DOUBLE_EQ(report.work, 2 * 3 * 0.625);
}

TEST(SimulatorTest, TransfersTakeLatencyAndTurnsOnTheLink) {
  SimulatedRun run = TwoStages();
  run.options.last_microbatch = 1.0;
  // Two rows of 4 features are 32 bytes.
  run.options.latency = 0.25;
  run.options.time_per_byte = 1.0 / 32;
  const SimulationReport report = SimulateRun(run);
  // Micro-batch 0 sets out at 0.5, is on the link until 1.5 and there at 1.75; 1 waits for the
  // link until 1.5 and is there at 2.75. Stage 1: forward 1.75 to 2.25, backward to 3.25, forward
  // to 3.75, backward to 4.75. Back: 4.5 and (link free at 4.25) 4.75 + 1 + 0.25 = 6; then 1 each.
  std::map<std::pair<int, TaskKind>, std::vector<double>> begins;
  for (const SimulatedTask& task : report.timeline) {
    begins[{task.stage, task.task.kind}].push_back(task.begin);
  }
  const std::vector<double> forwards{1.75, 3.25};
  const std::vector<double> backwards{4.5, 6.0};
  EXPECT_EQ((begins[{1, TaskKind::kForward}]), forwards);
  EXPECT_EQ((begins[{0, TaskKind::kBackward}]), backwards);
  EXPECT_DOUBLE_EQ(report.makespan, 7.0);
  EXPECT_EQ(report.moved, (MovedBytes{.activations = 64, .gradients = 64, .versions = 0}));
}

TEST(SimulatorTest, VersionsMoveOnlyWhereThePartitionMoves) {
  SimulatedRun run{.blocks = 6, .candidates = 2, .stages = 3, .partition = "equal"};
  run.options = {.subnets = 40, .in_flight_max = 4};
  EXPECT_EQ(SimulateRun(run).moved.versions, 0);
  const SearchSpace space = MakeTestSpace(/*blocks=*/6, /*candidates=*/3);
  const auto policy = *MakePolicy("causal");
  CostTable costs = MakeTestCosts(space);
  for (LayerCost& cost : costs.layers) cost.parameter_bytes = 10;
  const auto balanced = *MakePartition("balanced", space, costs, 3);
  Spec spec;
  spec.training.subnets = 40;
  const auto sampler = *MakeSampler(spec, space, "");
  const SimulationReport moving =
      Simulate(space, costs, *balanced, *policy, *sampler, {.subnets = 40, .in_flight_max = 4});
  EXPECT_GT(moving.moved.versions, 0);
  EXPECT_EQ(moving.moved.versions % 10, 0);
  EXPECT_EQ(moving.violations, 0);
}

TEST(SimulatorTest, SharesOfARunThatTakesNoTimeAreNumbers) {
  const SimulationReport report{.stages = {StageUse{}}};
  EXPECT_EQ(report.speedup(), 1.0);
  EXPECT_EQ(report.speedup_max(), 1.0);
  EXPECT_EQ(report.bubble(), 0.0);
  EXPECT_EQ(report.BusyShare(report.stages[0]), 0.0);
}

TEST(SimulatorTest, TellsHowManySubnetsAreFinished) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/2, /*candidates=*/2);
  const auto policy = *MakePolicy("causal");
  const CostTable costs = MakeTestCosts(space);
  const auto partition = *MakePartition("equal", space, costs, 2);
  Spec spec;
  spec.training.subnets = 1000;
  const auto sampler = *MakeSampler(spec, space, "");
  std::vector<std::int64_t> told;
  Simulate(space, costs, *partition, *policy, *sampler, {.subnets = 1000},
           [&](std::int64_t finished) { told.push_back(finished); });
  EXPECT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), 1000);
}

TEST(SimulatorTest, IsTheSameEveryTime) {
  SimulatedRun run{.trained_ends = true, .delay = 2};
  run.sampler.kind = SamplerKind::kFair;
  run.options.microbatches = 4;
  run.options.timeline_end = 20;
  run.options.latency = 0.01;
  EXPECT_EQ(SimulateRun(run), SimulateRun(run));
}

TEST(SimulatorTest, TheTimelineIsAWindowInWhichStagesDoOneThingAtATime) {
  SimulatedRun run;
  run.options = {.subnets = 60,
                 .microbatches = 2,
                 .in_flight_max = 8,
                 .timeline_begin = 10,
                 .timeline_end = 25};
  const SimulationReport report = SimulateRun(run);
  EXPECT_EQ(report.timeline.size(), 15u * 8 * (2 + 2 + 1));
  EXPECT_EQ(report.timeline_accesses.size(), 15u * 48);
  std::map<int, double> free;
  for (const SimulatedTask& task : report.timeline) {
    EXPECT_GE(task.task.seq, 10);
    EXPECT_LT(task.task.seq, 25);
    EXPECT_GE(task.begin, free[task.stage]);
    free[task.stage] = task.end;
  }
}

TEST(SimulatorTest, BusyTimesAddUpToTheWork) {
  SimulatedRun run;
  run.options.microbatches = 2;
  const SimulationReport report = SimulateRun(run);
  double busy = 0.0;
  for (const StageUse& stage : report.stages) busy += stage.busy();
  EXPECT_DOUBLE_EQ(busy, report.work);
  EXPECT_DOUBLE_EQ(report.work, 600 * 48 * 3.0);
  EXPECT_DOUBLE_EQ(report.bubble(), 1 - report.speedup() / 8);
}

}  // namespace
}  // namespace verbatim
