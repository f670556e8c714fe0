// A search space small enough to think about: vector blocks of linear candidates.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "supernet/search_space.h"

namespace verbatim {

inline OperatorSpec TestOperator(OperatorKind kind) {
  OperatorSpec op;
  op.kind = kind;
  return op;
}

/// Stem, `blocks` choice blocks and head on vectors of 4 features. Each block has `candidates`
/// linear layers and, as its last candidate, a skip, which has no versions.
inline SearchSpace MakeTestSpace(std::int64_t blocks, int candidates, bool trained_ends = true) {
  Spec spec;
  spec.training.batch = 4;
  spec.supernet.stem.features = 4;
  spec.supernet.stem.trainable = trained_ends;
  spec.supernet.stem.candidates = {TestOperator(OperatorKind::kLinear)};
  BlockSpec block;
  block.repeat = blocks;
  block.candidates.assign(static_cast<std::size_t>(candidates),
                          TestOperator(OperatorKind::kLinear));
  block.candidates.push_back(TestOperator(OperatorKind::kSkip));
  spec.supernet.blocks = {block};
  spec.supernet.head.trainable = trained_ends;
  spec.supernet.head.candidates = {TestOperator(OperatorKind::kClassifier)};
  Result<SearchSpace> space = SearchSpace::Build(spec, ActivationShape{1, 2, 2}, /*classes=*/3);
  EXPECT_TRUE(space.has_value()) << space.error().message;
  return *std::move(space);
}

}  // namespace verbatim
