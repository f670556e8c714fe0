// What the stages share about one subnet while it is in flight.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "schedule/partition.h"
#include "trainer/dataset.h"
#include "trainer/device_stream.h"

namespace verbatim {

/// Created at admission; `ranges` and all before it never change. `inputs`, `labels` and
/// `embedding` are written by stage 0's first task, and replaced by the last stage's first one,
/// `tied_gradient` by the last stage; later tasks on other stages are ordered after that by the
/// scheduler's lock, and on their devices by what is handed over. `loss` belongs to whoever hands
/// out results.
struct SubnetRun {
  std::int64_t seq = 0;
  std::vector<std::uint16_t> choices;  ///< one per choice block
  std::vector<std::uint32_t> samples;
  double learning_rate = 0.0;
  StageRanges ranges;
  at::Tensor inputs;    ///< of stage 0
  HandedTensor labels;  ///< dropped, as the inputs, after the last backward on the last stage
  float loss = 0.0f;    ///< sum over the micro-batches so far
  /// Of a supernet whose head is tied to its stem: the embedding that this subnet read, as a leaf
  /// of the last stage's graph, and that graph's gradient for it, summed over the micro-batches so
  /// far. The sum is undefined where the stem is frozen.
  HandedTensor embedding;
  HandedTensor tied_gradient;
};

}  // namespace verbatim
