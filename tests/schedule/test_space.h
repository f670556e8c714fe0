// A search space small enough to think about: vector blocks of linear candidates.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

inline OperatorSpec TestOperator(OperatorKind kind) {
  OperatorSpec op;
  op.kind = kind;
  return op;
}

/// Stem, `blocks` choice blocks and head on vectors of 4 features. Each block has `candidates`
/// linear layers and, as its last candidate, a skip, which has no versions. Every position has the
/// delay given.
inline SearchSpace MakeTestSpace(std::int64_t blocks, int candidates, bool trained_ends = true,
                                 std::int64_t delay = 0) {
  Spec spec;
  spec.training.batch = 4;
  spec.supernet.stem.features = 4;
  spec.supernet.stem.trainable = trained_ends;
  spec.supernet.stem.candidates = {TestOperator(OperatorKind::kLinear)};
  spec.supernet.stem.delay = delay;
  BlockSpec block;
  block.delay = delay;
  block.repeat = blocks;
  block.candidates.assign(static_cast<std::size_t>(candidates),
                          TestOperator(OperatorKind::kLinear));
  block.candidates.push_back(TestOperator(OperatorKind::kSkip));
  spec.supernet.blocks = {block};
  spec.supernet.head.trainable = trained_ends;
  spec.supernet.head.delay = delay;
  spec.supernet.head.candidates = {TestOperator(OperatorKind::kClassifier)};
  Result<SearchSpace> space = SearchSpace::Build(spec, ActivationShape{1, 2, 2}, /*classes=*/3);
  EXPECT_TRUE(space.has_value()) << space.error().message;
  return *std::move(space);
}

/// Costs that differ from candidate to candidate, so that balanced ranges differ between subnets.
inline CostTable MakeTestCosts(const SearchSpace& space) {
  CostTable costs;
  for (const Layer& layer : space.layers()) {
    LayerCost cost;
    cost.forward = 1.0 + 3.0 * (layer.id % 4);
    cost.backward = 2.0 * cost.forward;
    costs.layers.push_back(cost);
  }
  return costs;
}

}  // namespace verbatim
