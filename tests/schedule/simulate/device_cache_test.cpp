// Simulations of stages that hold a part of their layers: what look-ahead hides, what no cache can,
// and that a bounded memory changes no access.
#include "schedule/simulate/device_cache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "tests/schedule/simulate/simulated_space.h"

namespace verbatim {
namespace {

/// Every choice block's layer: 4 × 4 weights and 4 biases of float32.
constexpr double kLayerBytes = 80.0;

/// A stream without conflicts over 4 stages of 4 blocks. Stem and head take nothing.
SimulatedRun Conveyor(std::int64_t budget_layers, double layer_time, CachePolicy policy) {
  SimulatedRun run{.blocks = 16, .candidates = 24, .stages = 4};
  run.sampler.kind = SamplerKind::kFair;
  run.options = {.subnets = 300, .microbatches = 4, .in_flight_max = 4};
  run.options.device_memory =
      DeviceMemoryOptions{.budget_bytes = static_cast<std::int64_t>(kLayerBytes) * budget_layers,
                          .time_per_byte = layer_time / kLayerBytes,
                          .policy = policy};
  return run;
}

SimulationReport Unbounded(SimulatedRun run) {
  run.options.device_memory.reset();
  return SimulateRun(run);
}

/// What the stem and the first four subnets' layers on a stage take to load: before that nothing
/// can be hidden.
double FirstLoads(const SimulatedRun& run) {
  const double layer_time = run.options.device_memory->time_per_byte * kLayerBytes;
  return layer_time * static_cast<double>(1 + run.options.in_flight_max * run.blocks / run.stages);
}

TEST(DeviceCacheTest, LookAheadHidesWhatTheBandwidthAllows) {
  // Room for four subnets in flight, of four layers each, for one to load ahead, and to spare. A
  // subnet takes 12 of a stage's time: as long as its loads take no longer, all can be hidden.
  for (const double layer_time : {0.01, 1.0, 2.0, 2.9}) {
    SCOPED_TRACE(layer_time);
    const SimulatedRun run = Conveyor(4 * 4 + 4 + 4, layer_time, CachePolicy::kLookAhead);
    const SimulationReport report = SimulateRun(run);
    const SimulationReport unbounded = Unbounded(run);
    ASSERT_TRUE(report.device_memory);
    const DeviceMemoryUse& use = *report.device_memory;
    for (const double stall : use.stall) EXPECT_LE(stall, FirstLoads(run) + 1e-6);
    EXPECT_LE(report.makespan, unbounded.makespan + FirstLoads(run) + 1e-6);
    EXPECT_LE(use.cache.misses, 110) << "of the first subnets, which come before anything is there";
    EXPECT_GT(use.cache.HitRate(), 0.97);
  }
}

TEST(DeviceCacheTest, OnDemandWaitsForEveryLayer) {
  const SimulationReport ahead = SimulateRun(Conveyor(24, 2.0, CachePolicy::kLookAhead));
  const SimulationReport demand = SimulateRun(Conveyor(24, 2.0, CachePolicy::kOnDemand));
  const SimulationReport lru = SimulateRun(Conveyor(24, 2.0, CachePolicy::kLru));
  EXPECT_LT(demand.device_memory->cache.HitRate(), 0.5);
  EXPECT_LE(lru.device_memory->cache.HitRate(), demand.device_memory->cache.HitRate());
  EXPECT_GT(demand.device_memory->MeanStall(), 10 * ahead.device_memory->MeanStall());
  EXPECT_GE(lru.device_memory->cache.bytes_loaded, demand.device_memory->cache.bytes_loaded);
  EXPECT_GT(lru.makespan, ahead.makespan);
}

TEST(DeviceCacheTest, TooLittleBandwidthStallsWhateverThePolicy) {
  const SimulationReport report = SimulateRun(Conveyor(24, 6.0, CachePolicy::kLookAhead));
  const DeviceMemoryUse& use = *report.device_memory;
  EXPECT_GT(report.ShareOf(use.stall[0]), 0.3) << "the others wait for what stage 0 does";
  // The engines never rest: nothing can be faster with as many loads.
  const double loading = 6.0 * static_cast<double>(use.cache.loads) / 4;
  EXPECT_LT(report.makespan, 1.05 * loading);
}

TEST(DeviceCacheTest, KeepsCausalityOnTheLeastMemory) {
  for (const std::string policy : {"causal", "sequential", "gpipe", "1f1b"}) {
    for (const std::string partition : {"blocks", "balanced"}) {
      for (const CachePolicy cache :
           {CachePolicy::kLookAhead, CachePolicy::kOnDemand, CachePolicy::kLru}) {
        SCOPED_TRACE(policy + " " + partition + " " + std::string(NameOf(cache)));
        SimulatedRun run{.blocks = 10, .candidates = 3, .stages = 3, .policy = policy};
        run.trained_ends = true;
        run.partition = partition;
        run.options = {.subnets = 100, .microbatches = 2, .in_flight_max = 6};
        const std::int64_t least = Unbounded(run).device_memory_least;
        run.options.device_memory = DeviceMemoryOptions{
            .budget_bytes = least, .time_per_byte = 0.7 / kLayerBytes, .policy = cache};
        const SimulationReport report = SimulateRun(run);
        EXPECT_EQ(report.violations, 0);
        EXPECT_EQ(report.accesses, 100 * 12);
        for (const StageUse& stage : report.stages) EXPECT_LE(stage.weight_bytes, least);
      }
    }
  }
}

TEST(DeviceCacheTest, WaitsForRoomWhereSubnetsInFlightTakeAll) {
  SimulatedRun run = Conveyor(5, 0.001, CachePolicy::kLookAhead);
  const SimulationReport report = SimulateRun(run);
  const DeviceMemoryUse& use = *report.device_memory;
  EXPECT_GT(use.MeanStallForRoom(), 0.8 * use.MeanStall());
  EXPECT_GT(report.makespan, 1.5 * Unbounded(run).makespan);
}

TEST(DeviceCacheTest, AmpleMemoryLoadsEveryLayerOnce) {
  SimulatedRun run = Conveyor(1000, 0.001, CachePolicy::kLookAhead);
  const SimulationReport report = SimulateRun(run);
  EXPECT_EQ(report.device_memory->cache.loads, 16 * 24 + 2);
  EXPECT_EQ(report.device_memory->MeanStallForRoom(), 0.0);
}

}  // namespace
}  // namespace verbatim
