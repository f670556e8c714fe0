// How somebody looks into a running training, and may reach into it: fault injection, and the
// capture of tensors. Training itself never needs one, and a probe that changes nothing changes no
// bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "schedule/layer_cache.h"
#include "schedule/task.h"
#include "supernet/search_space.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// Every method does nothing unless overridden. Calls about one subnet's use of a layer come from
/// the stage that runs it, one at a time; those of different stages come at once, also about one
/// layer where it has a delay. What is thrown ends the run as a failed one. References are valid
/// during the call.
class StageProbe {
 public:
  virtual ~StageProbe() = default;

  /// At admission, before anything uses the samples or reports them. Called under the run's lock.
  virtual void OnSamples(std::int64_t /*seq*/, std::vector<std::uint32_t>& /*samples*/) {}

  /// Before a stage executes a task.
  virtual void BeforeTask(int /*stage*/, const Task& /*task*/) {}

  /// At the first forward, for every layer of the subnet; under a lock where the layer has a delay.
  /// Forward and backward use the parameters left in `read`, which must require gradients where the
  /// layer is trainable; `read.version` is what is recorded. The update still applies to the live
  /// parameters.
  virtual void OnRead(std::int64_t /*seq*/, const Layer& /*layer*/, LayerRead& /*read*/) {}

  /// Before each layer's forward, whether or not it has dropout; again, and to be answered alike,
  /// before the forward that begins the backward of a layer that is computed again.
  virtual void OnDropoutKey(std::int64_t /*seq*/, const Layer& /*layer*/, RandomKey& /*key*/) {}

  /// After each layer's forward; not again where it is computed again.
  virtual void OnForward(std::int64_t /*seq*/, std::int32_t /*microbatch*/, const Layer& /*layer*/,
                         const at::Tensor& /*output*/) {}

  /// After a micro-batch's backward, for every versioned layer. `gradients` and `sum` are as
  /// Layer::parameters; `sum` is undefined at the first micro-batch. True: the probe has
  /// accumulated the gradients itself; after the last one, every `sum` must be contiguous.
  virtual bool OnGradients(std::int64_t /*seq*/, std::int32_t /*microbatch*/,
                           const Layer& /*layer*/, std::span<at::Tensor> /*sum*/,
                           std::span<const at::Tensor> /*gradients*/) {
    return false;
  }

  /// Around the update of every versioned layer: after the version updated is noted; before the
  /// digests, with the new version set.
  virtual void BeforeUpdate(std::int64_t /*seq*/, const Layer& /*layer*/,
                            std::span<const at::Tensor> /*gradients*/, LayerState& /*state*/) {}
  virtual void AfterUpdate(std::int64_t /*seq*/, const Layer& /*layer*/,
                           std::span<const at::Tensor> /*gradients*/, LayerState& /*state*/) {}

  /// Before a copy thread moves a layer (trainer/layer_mover.h); those of several threads at once.
  virtual void BeforeTransfer(const Transfer& /*transfer*/) {}
  /// When its stream waits for what the transfer reads, just before it is enqueued.
  virtual void OnTransfer(const Transfer& /*transfer*/) {}
};

}  // namespace verbatim
