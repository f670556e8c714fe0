// A layer's tensors while it is trained: parameters, buffers, optimizer state, and its version.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/digest.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/device_stream.h"
#include "trainer/tensor_digest.h"

namespace verbatim {

/// What a subnet reads of one layer, from its first forward to its update.
struct LayerRead {
  std::int64_t version = -1;           ///< LayerState::version at that moment
  std::vector<at::Tensor> parameters;  ///< LayerState::parameters: the same tensors, no copies
  Mark written = nullptr;              ///< LayerState::written, of this version
};

/// Owned by the run. A layer without a delay is touched only by the stage that runs its position
/// for the subnet whose turn it is (or, before and after training, by the caller). A layer with a
/// delay is read by some stages while another one updates it: under a lock, see ReadVersion,
/// CopyForUpdate and PublishVersion. Tensors live on the device of the stage that used them last.
struct LayerState {
  std::vector<at::Tensor> parameters;  ///< leaves; require gradients where the layer is trainable
  std::vector<at::Tensor> buffers;
  /// Optimizer state, `states_per_parameter` tensors for each parameter in order.
  std::vector<at::Tensor> optimizer_state;
  std::int64_t updates = 0;   ///< applied so far
  std::int64_t version = -1;  ///< seq of the subnet whose update wrote it; -1: initial weights
  /// When the device has written all that: whoever reads or writes it next waits for it on his
  /// stream, or, to read it on the host, waits himself.
  Mark written = nullptr;
  /// Of a layer with a delay: the versions before this one that may still be read, oldest first.
  std::deque<LayerRead> earlier;
};

/// Names of the state tensors that an optimizer keeps of each parameter, in order.
std::vector<const char*> OptimizerStateNames(const OptimizerSpec& optimizer);

/// The initial weights: a function of (seed, layer) alone (docs/spec.md, section 5).
LayerState InitialLayerState(const Layer& layer, const OptimizerSpec& optimizer, std::uint64_t seed,
                             at::Device device);

/// One update of every parameter with its gradient (docs/spec.md, section 7). `gradients` as
/// `state.parameters`, contiguous. Counts the update, leaves the version alone.
void ApplyUpdate(const OptimizerSpec& optimizer, double learning_rate,
                 std::span<const at::Tensor> gradients, LayerState& state);

/// The version that subnet `seq` reads: the newest, or, where the layer has a delay, the newest
/// that a subnet below seq - delay wrote (the oldest kept, where a broken schedule has dropped
/// that).
LayerRead ReadVersion(const Layer& layer, const LayerState& state, std::int64_t seq);

/// For the update of a layer with a delay: as `state`, with parameters of its own, so that those
/// who read the old ones keep them. Optimizer state and buffers are shared: updates come one at a
/// time.
LayerState CopyForUpdate(const LayerState& state);

/// Makes `next`, which CopyForUpdate gave, the newest version, and drops earlier ones that no
/// subnet reads any more.
void PublishVersion(const Layer& layer, LayerState next, LayerState& state);

/// A layer with a delay: another rank has written `read`, to be read here. It may be newer than the
/// state, whose buffers and optimizer state are then out of date: no update comes before the whole
/// of what it updates. Versions that are there already, and those that no subnet reads any more,
/// are dropped.
void AddReadVersion(const Layer& layer, LayerRead read, LayerState& state);

/// A layer with batch norm and a delay: adds what each micro-batch measured to the running
/// statistics, in order (docs/spec.md, section 6). `measured` by micro-batch, then as
/// `state.buffers`.
void AddRunningStatistics(std::span<const std::vector<at::Tensor>> measured, LayerState& state);

/// Digests as docs/format.md, section 4, states them; read later (trainer/tensor_digest.h).
PendingNamedDigest TakeWeightsDigest(const Layer& layer, const LayerState& state);
PendingNamedDigest TakeOptimizerStateDigest(const Layer& layer, const OptimizerSpec& optimizer,
                                            const LayerState& state);
PendingNamedDigest TakeGradientsDigest(const Layer& layer, std::span<const at::Tensor> gradients);

/// The same, waited for.
inline Digest WeightsDigest(const Layer& layer, const LayerState& state) {
  return TakeWeightsDigest(layer, state).Now();
}
inline Digest OptimizerStateDigest(const Layer& layer, const OptimizerSpec& optimizer,
                                   const LayerState& state) {
  return TakeOptimizerStateDigest(layer, optimizer, state).Now();
}

}  // namespace verbatim
