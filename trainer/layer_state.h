// A layer's tensors while it is trained: parameters, buffers, optimizer state, and its version.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// Owned by the run, touched only by the stage that runs the layer's position (or, before and after
/// training, by the caller). Tensors live on the run's device.
struct LayerState {
  std::vector<at::Tensor> parameters;  ///< leaves; require gradients where the layer is trainable
  std::vector<at::Tensor> buffers;
  /// Optimizer state, `states_per_parameter` tensors for each parameter in order.
  std::vector<at::Tensor> optimizer_state;
  std::int64_t updates = 0;   ///< applied so far
  std::int64_t version = -1;  ///< seq of the subnet whose update wrote it; -1: initial weights
};

/// The initial weights: a function of (seed, layer) alone (docs/spec.md, section 5).
LayerState InitialLayerState(const Layer& layer, const OptimizerSpec& optimizer, std::uint64_t seed,
                             at::Device device);

/// One update of every parameter with its gradient (docs/spec.md, section 7). `gradients` as
/// `state.parameters`, contiguous. Counts the update, leaves the version alone.
void ApplyUpdate(const OptimizerSpec& optimizer, double learning_rate,
                 std::span<const at::Tensor> gradients, LayerState& state);

/// Digests as docs/format.md, section 4, states them.
Digest WeightsDigest(const Layer& layer, const LayerState& state);
Digest OptimizerStateDigest(const Layer& layer, const OptimizerSpec& optimizer,
                            const LayerState& state);
Digest GradientsDigest(const Layer& layer, std::span<const at::Tensor> gradients);

}  // namespace verbatim
