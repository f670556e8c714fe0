// What the stages share about one subnet while it is in flight.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "schedule/partition.h"
#include "trainer/dataset.h"

namespace verbatim {

/// Created at admission; `ranges` and all before it never change. `batch` is written by stage 0's
/// first task and `loss` by the last stage; later tasks on other stages are ordered after that by
/// the scheduler's lock.
struct SubnetRun {
  std::int64_t seq = 0;
  std::vector<std::uint16_t> choices;  ///< one per choice block
  std::vector<std::uint32_t> samples;
  double learning_rate = 0.0;
  StageRanges ranges;
  Batch batch;        ///< dropped when its last backward on the last stage is done
  float loss = 0.0f;  ///< sum over the micro-batches so far
};

}  // namespace verbatim
