// Small experiments whose checkpoints differ in kind.
#pragma once

#include <utility>
#include <vector>

#include "tests/trainer/small_run.h"

namespace verbatim {

/// Each with a name. `delayed`: one whose layers have delays.
inline std::vector<std::pair<const char*, Spec>> CheckpointSpecs(const Spec& delayed) {
  Spec microbatches = SmallSpec();
  microbatches.training.microbatches = 3;
  Spec adam = SmallSpec();
  adam.training.optimizer = OptimizerSpec{};
  adam.training.optimizer.kind = OptimizerKind::kAdam;
  adam.training.lr.base = 0.001;
  Spec frozen = SmallSpec();
  frozen.supernet.stem.trainable = false;
  frozen.supernet.head.trainable = false;
  Spec fair = delayed;
  fair.sampler.kind = SamplerKind::kFair;
  Spec text = SmallTextSpec();
  text.supernet.stem.delay = 3;
  text.supernet.blocks[1].delay = 1;
  return {{"micro-batches", microbatches},
          {"Adam", adam},
          {"frozen", frozen},
          {"delays", delayed},
          {"fair, delays", fair},
          {"text, delays", text}};
}

}  // namespace verbatim
