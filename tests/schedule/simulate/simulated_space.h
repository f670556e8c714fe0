// Search spaces of equal blocks for simulations, and what it takes to run one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "schedule/simulate/simulator.h"
#include "tests/schedule/test_space.h"

namespace verbatim {

struct SimulatedRun {
  std::int64_t blocks = 48;
  int candidates = 23;
  int stages = 8;
  std::uint64_t seed = 3;
  std::string policy = "causal";
  SamplerSpec sampler;

  bool trained_ends = false;
  std::int64_t delay = 0;  ///< of stem and head
  /// "blocks": the choice blocks divided equally, the stem on the first stage, the head on the
  /// last.
  std::string partition = "blocks";
  std::string recompute = "none";
  SimulationOptions options{.subnets = 600, .in_flight_max = 30};
};

inline Spec SpecOf(const SimulatedRun& run) {
  Spec spec;
  spec.name = "simulated";
  spec.seed = run.seed;
  spec.sampler = run.sampler;
  spec.training.subnets = run.options.subnets;
  spec.training.microbatches = run.options.microbatches;
  spec.training.batch = 2 * run.options.microbatches;
  BlockSpec end;
  end.trainable = run.trained_ends;
  end.delay = run.delay;
  end.features = 4;
  end.candidates = {TestOperator(OperatorKind::kLinear)};
  spec.supernet.stem = end;
  BlockSpec block;
  block.repeat = run.blocks;
  block.candidates.assign(static_cast<std::size_t>(run.candidates),
                          TestOperator(OperatorKind::kLinear));
  spec.supernet.blocks = {block};
  end.features = 0;
  end.candidates = {TestOperator(OperatorKind::kClassifier)};
  spec.supernet.head = end;
  return spec;
}

/// "4,3,3,4" for 12 blocks on 4 stages.
inline std::string BlockPartition(std::int64_t blocks, int stages) {
  std::string text;
  for (int stage = 0; stage < stages; ++stage) {
    std::int64_t positions = blocks / stages + (stage < blocks % stages ? 1 : 0);
    if (stage == 0) ++positions;
    if (stage == stages - 1) ++positions;
    text += (stage == 0 ? "" : ",") + std::to_string(positions);
  }
  return text;
}

/// With equal costs.
inline SimulationReport SimulateRun(const SimulatedRun& run) {
  const Spec spec = SpecOf(run);
  auto space = SearchSpace::Build(spec, ActivationShape{1, 2, 2}, /*classes=*/3);
  if (!space) {
    ADD_FAILURE() << space.error().message;
    return {};
  }
  const CostTable costs = EqualCosts(*space, spec);
  const auto sampler = MakeSampler(spec, *space, "");
  const auto policy = MakePolicy(run.policy);
  const auto partition = MakePartition(
      run.partition == "blocks" ? BlockPartition(run.blocks, run.stages) : run.partition, *space,
      costs, run.stages);
  auto recompute = RecomputePlan::Make(run.recompute, *space);
  if (!sampler || !policy || !partition || !recompute) {
    ADD_FAILURE() << "no such sampler, policy, partition or plan";
    return {};
  }
  SimulationOptions options = run.options;
  options.recompute = *std::move(recompute);
  return Simulate(*space, costs, **partition, **policy, **sampler, options);
}

}  // namespace verbatim
