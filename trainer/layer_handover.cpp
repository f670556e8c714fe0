#include "trainer/layer_handover.h"

#include <mutex>
#include <utility>

namespace verbatim {

LayerRead LayerHandover::Read(const Layer& layer, std::int64_t seq) {
  LayerState& state = context_.layers[layer.id];
  if (layer.IsVersioned() && layer.delay == 0) {
    BringState(state);
    return ReadVersion(layer, state, seq);
  }
  const bool is_frozen = !layer.IsVersioned() && layer.delay == 0;
  const auto known = frozen_.find(layer.id);
  if (known != frozen_.end()) return known->second;
  LayerRead read;
  {
    std::unique_lock lock(context_.delayed_layers, std::defer_lock);
    if (layer.delay > 0) lock.lock();
    read = ReadVersion(layer, state, seq);
  }
  const bool moves = context_.copies && is_frozen && !read.parameters.empty();
  if (moves) read = context_.copies->Read(stage_, layer.id);
  stream_.WaitFor(read.written);
  BringLeaves(read.parameters);
  if (is_frozen && !moves && stream_.IsBehind()) frozen_[layer.id] = read;
  return read;
}

LayerState LayerHandover::TakeForUpdate(const Layer& layer) const {
  // The asynchronous policy lets two stages update a layer at once.
  const std::lock_guard lock(context_.delayed_layers);
  const LayerState& state = context_.layers[layer.id];
  stream_.WaitFor(state.written);
  LayerState next = CopyForUpdate(state);
  BringState(next);
  return next;
}

void LayerHandover::BringLeaves(std::vector<at::Tensor>& tensors) const {
  if (!stream_.IsBehind()) return;
  for (at::Tensor& tensor : tensors) {
    at::Tensor here = stream_.Bring(tensor);
    if (here.is_same(tensor)) continue;
    tensor = here.requires_grad_(tensor.requires_grad());
  }
}

void LayerHandover::BringState(LayerState& state) const {
  stream_.WaitFor(state.written);
  BringLeaves(state.parameters);
  BringLeaves(state.buffers);
  BringLeaves(state.optimizer_state);
}

std::vector<at::Tensor> LeavesOn(at::Device device, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> leaves = tensors;
  for (at::Tensor& tensor : leaves) {
    if (tensor.device() == device) continue;
    tensor = tensor.detach().to(device).requires_grad_(tensor.requires_grad());
  }
  return leaves;
}

void BringHome(std::vector<LayerState>& layers, at::Device home) {
  for (LayerState& state : layers) {
    for (auto* tensors : {&state.parameters, &state.buffers, &state.optimizer_state}) {
      *tensors = LeavesOn(home, *tensors);
    }
    for (LayerRead& read : state.earlier) {
      read.parameters = LeavesOn(home, read.parameters);
      read.written.reset();
    }
    state.written.reset();
  }
}

}  // namespace verbatim
