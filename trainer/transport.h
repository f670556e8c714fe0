// Moves activations and gradients between stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "schedule/task.h"
#include "trainer/device_stream.h"

namespace verbatim {

/// Any thread. A tensor sent for (stage, task) is the input that this task needs on that stage: the
/// previous stage's activation for a forward, the next stage's gradient for a backward. Each is
/// sent once and received once, after the scheduler has delivered the task.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void Send(int stage, const Task& task, HandedTensor tensor) = 0;
  /// CHECKs that it was sent.
  virtual HandedTensor Receive(int stage, const Task& task) = 0;
};

}  // namespace verbatim
