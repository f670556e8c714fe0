// Speed of scheduling: simulations of 48 blocks × 23 candidates with the sampler `fair`, by policy,
// stages and micro-batches. Tasks per second count processor time; a task is admitted, chosen,
// finished and accounted for.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "schedule/simulate/simulator.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

constexpr std::int64_t kBlocks = 48;
constexpr std::int64_t kSubnets = 2000;

Spec BenchSpec(std::int64_t microbatches) {
  Spec spec;
  spec.seed = 1;
  spec.sampler.kind = SamplerKind::kFair;
  spec.training = {.subnets = kSubnets, .batch = microbatches, .microbatches = microbatches};
  OperatorSpec linear;
  linear.kind = OperatorKind::kLinear;
  BlockSpec block;
  block.repeat = kBlocks;
  block.candidates.assign(23, linear);
  spec.supernet.blocks = {block};
  spec.supernet.stem.features = 4;
  spec.supernet.stem.candidates = {linear};
  spec.supernet.stem.delay = 4;
  OperatorSpec classifier;
  classifier.kind = OperatorKind::kClassifier;
  spec.supernet.head.candidates = {classifier};
  spec.supernet.head.delay = 4;
  return spec;
}

void Schedule(benchmark::State& state, const std::string& policy_name) {
  const std::int64_t stages = state.range(0);
  const std::int64_t microbatches = state.range(1);
  const Spec spec = BenchSpec(microbatches);
  const SearchSpace space = SearchSpace::Build(spec, ActivationShape{1, 2, 2}, 3).value();
  const CostTable costs = EqualCosts(space, spec);
  const auto policy = MakePolicy(policy_name).value();
  const auto partition = MakePartition("balanced", space, costs, stages).value();
  SimulationOptions options;
  options.subnets = kSubnets;
  options.microbatches = static_cast<std::int32_t>(microbatches);
  options.in_flight_max = 30;
  for (auto _ : state) {
    const auto sampler = MakeSampler(spec, space, "").value();
    benchmark::DoNotOptimize(Simulate(space, costs, *partition, *policy, *sampler, options));
  }
  state.SetItemsProcessed(state.iterations() * kSubnets * stages * (2 * microbatches + 1));
}
BENCHMARK_CAPTURE(Schedule, causal, "causal")
    ->Args({4, 8})
    ->Args({16, 1})
    ->Args({16, 8})
    ->Args({48, 8});
BENCHMARK_CAPTURE(Schedule, 1f1b, "1f1b")->Args({16, 8});
BENCHMARK_CAPTURE(Schedule, pipedream, "pipedream")->Args({16, 8});

}  // namespace
}  // namespace verbatim
