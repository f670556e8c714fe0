// Simulates a run under a virtual clock: the scheduler and policy of real runs, tasks that take
// what a cost table says, and links between stages.
#pragma once

#include <cstdint>
#include <functional>

#include "schedule/partition.h"
#include "schedule/policy.h"
#include "schedule/simulate/simulation.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"
#include "supernet/stream.h"

namespace verbatim {

/// Runs subnets 0 … subnets-1 of the sampler's stream. Deterministic; any thread. Time and memory
/// per subnet do not grow with the run. What falls on one instant happens stage by stage in
/// ascending order, and a stage decides at once: it does not yet know what a later stage hands it
/// at that instant. A real run, where nothing falls on one instant, does a little better.
/// `finished`, if given, is told now and then how many subnets are finished. `costs` are of
/// micro-batches as `options` cuts them.
SimulationReport Simulate(const SearchSpace& space, const CostTable& costs,
                          const Partition& partition, const Policy& policy, const Sampler& sampler,
                          const SimulationOptions& options,
                          const std::function<void(std::int64_t)>& finished = {});

}  // namespace verbatim
