// A layer's state as a checkpoint file holds it (docs/format.md, "Checkpoints").
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/safetensors.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// A copy of what training may change from now on, on the CPU. A layer with a delay never changes
/// the tensors of a version, so they are shared where they are on the CPU already.
LayerState CopyToHost(const Layer& layer, const LayerState& state);

/// The same of a state that nobody changes any more: its tensors, where they are on the CPU.
LayerState ShareOnHost(const LayerState& state);

/// Leaves a state with its numbers alone.
void DropTensors(LayerState& state);

/// Bytes of all tensors of a state.
std::size_t BytesOf(const LayerState& state);

/// `state` is on the CPU and contiguous, and outlives the result, which has views into it.
StoredTensors DescribeLayerState(const Layer& layer, const OptimizerSpec& optimizer,
                                 const LayerState& state);

/// The inverse, on `device`. kBadInput where the tensors are not exactly those of this layer at
/// this version; `source` names the file in errors.
Result<LayerState> RestoreLayerState(const Layer& layer, const OptimizerSpec& optimizer,
                                     std::int64_t version, const StoredTensors& stored,
                                     at::Device device, const std::string& source);

}  // namespace verbatim
