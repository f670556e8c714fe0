#include "replay/tensor_capture.h"

#include <fmt/format.h>

namespace verbatim {
namespace {

at::Tensor Copy(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU).contiguous().clone();
}

}  // namespace

void TensorCapture::OnForward(std::int64_t seq, std::int32_t microbatch, const Layer& layer,
                              const at::Tensor& output) {
  if (seq != seq_) return;
  at::Tensor copy = Copy(output);
  const std::lock_guard lock(mutex_);
  outputs_[{microbatch, layer.id}] = std::move(copy);
  layers_.emplace(layer.id, layer);
}

void TensorCapture::AfterUpdate(std::int64_t seq, const Layer& layer,
                                std::span<const at::Tensor> gradients, LayerState& state) {
  if (seq != seq_) return;
  CapturedUpdate update;
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    const std::string& name = layer.parameters[i].name;
    update.gradients.push_back({"gradient of " + name, Copy(gradients[i])});
    update.weights.push_back({name, Copy(state.parameters[i])});
  }
  for (std::size_t i = 0; i < layer.buffers.size(); ++i) {
    update.weights.push_back({layer.buffers[i].name, Copy(state.buffers[i])});
  }
  const std::size_t kinds = state.optimizer_state.size() / layer.parameters.size();
  for (std::size_t i = 0; i < state.optimizer_state.size(); ++i) {
    update.optimizer_state.push_back(
        {fmt::format("optimizer state {} of {}", i % kinds, layer.parameters[i / kinds].name),
         Copy(state.optimizer_state[i])});
  }
  const std::lock_guard lock(mutex_);
  updates_[layer.id] = std::move(update);
}

}  // namespace verbatim
