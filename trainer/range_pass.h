// A micro-batch's way through a stage's range of a subnet, forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "schedule/task.h"
#include "supernet/search_space.h"
#include "trainer/layer_state.h"
#include "trainer/operators.h"
#include "trainer/run_context.h"
#include "trainer/subnet_run.h"

namespace verbatim {

/// One layer of the range, as a subnet uses it.
struct LayerUse {
  const Layer* layer;
  LayerRead read;
  /// Batch norm and a delay: the batch statistics of each micro-batch.
  std::vector<std::vector<at::Tensor>> statistics;
  /// Of a versioned layer's parameters: summed over the micro-batches so far.
  std::vector<at::Tensor> gradients;
};

/// A micro-batch between its forward and its backward.
struct RangeActivation {
  at::Tensor input;   ///< leaf of this stage's graph
  at::Tensor output;  ///< activation, or the loss on the last stage
};

/// A subnet's part of a stage, between its first forward and its update.
struct OpenRange {
  std::vector<LayerUse> uses;                           ///< by position of the range
  std::map<std::int32_t, RangeActivation> activations;  ///< by micro-batch
};

/// One thread at a time. Throws what LibTorch throws.
class RangePass {
 public:
  /// `context` outlives it.
  RangePass(const RunContext& context, int stage) : context_(context), stage_(stage) {}

  /// The range's output of a micro-batch, of which the range keeps what its backward needs.
  at::Tensor Forward(const Task& task, const SubnetRun& subnet, const at::Tensor& input,
                     OpenRange& range) const;

  /// Adds a micro-batch's gradients to the sums, a tied embedding's to the subnet's, and forgets
  /// its activation. `output_gradient` is undefined where the output is the loss. The gradient of
  /// the input, where it needs one, is handed to `give_input_gradient` as soon as it is there.
  void Backward(const Task& task, const at::Tensor& output_gradient,
                const std::function<void(const at::Tensor&)>& give_input_gradient,
                SubnetRun& subnet, OpenRange& range) const;

 private:
  /// The buffers that a layer's forward writes: its own, or new ones where they wait for the
  /// update.
  void ChooseBuffers(LayerUse& use, OperatorContext& operator_context) const;
  RandomKey DropoutKey(const Task& task, const Layer& layer) const;
  /// Whether this stage's graph holds the stem's embedding as the matrix of a head tied to it, and
  /// the embedding is trained.
  bool HasTiedGradient() const;
  /// Adds one micro-batch's gradients of all trainable parameters of `uses`.
  void Accumulate(const Task& task, std::span<const at::Tensor> gradients,
                  std::span<LayerUse> uses) const;

  const RunContext& context_;
  const int stage_;
};

}  // namespace verbatim
