#include "trainer/layer_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <span>
#include <utility>

#include "base/check.h"

namespace verbatim {
namespace {

std::int64_t BytesOf(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

std::vector<at::Tensor> TensorsOf(const LayerState& state) {
  std::vector<at::Tensor> tensors = state.parameters;
  tensors.insert(tensors.end(), state.buffers.begin(), state.buffers.end());
  tensors.insert(tensors.end(), state.optimizer_state.begin(), state.optimizer_state.end());
  return tensors;
}

/// The inverse.
void SetTensors(std::span<const at::Tensor> tensors, LayerState& state) {
  for (auto* const kind : {&state.parameters, &state.buffers, &state.optimizer_state}) {
    for (at::Tensor& tensor : *kind) {
      tensor = tensors.front();
      tensors = tensors.subspan(1);
    }
  }
  VERBATIM_CHECK(tensors.empty());
}

/// The layer's tensors, as they are at home.
std::vector<at::Tensor> Housed(const Layer& layer, at::Device device, LayerState& state) {
  std::vector<at::Tensor> home = TensorsOf(state);
  for (at::Tensor& tensor : home) {
    VERBATIM_CHECK(tensor.is_cpu(), "{} is not at home", layer.name);
    if (device.is_cpu() || tensor.is_pinned()) continue;
    tensor = tensor.detach().pin_memory().requires_grad_(tensor.requires_grad());
  }
  SetTensors(home, state);
  return home;
}

/// A leaf as `original` is, in memory of its own on `device`.
at::Tensor CopyTo(at::Device device, const at::Tensor& original) {
  at::Tensor copy = at::empty_like(original, original.options().device(device));
  copy.copy_(original, /*non_blocking=*/!device.is_cpu());
  return copy.requires_grad_(original.requires_grad());
}

}  // namespace

LayerCopies::LayerCopies(const SearchSpace& space, std::vector<LayerState>& layers,
                         at::Device device, std::vector<std::int64_t> room_bytes)
    : space_(space),
      layers_(layers),
      device_(device),
      home_(layers.size()),
      home_versions_(layers.size()),
      copies_(room_bytes.size()),
      room_bytes_(std::move(room_bytes)) {
  for (const Layer& layer : space.layers()) Rehouse(layer.id);
}

void LayerCopies::Rehouse(int layer) {
  LayerState& state = layers_[layer];
  if (space_.layer(layer).delay == 0) home_[layer] = Housed(space_.layer(layer), device_, state);
  home_versions_[layer] = state.version;
}

void LayerCopies::Load(int stage, int layer) {
  CheckHome(layer);
  const at::NoGradGuard no_grad;
  Hold(stage, BytesOf(home_[layer]));
  Tensors copy;
  copy.reserve(home_[layer].size());
  for (const at::Tensor& tensor : home_[layer]) copy.push_back(CopyTo(device_, tensor));
  const std::lock_guard lock(mutex_);
  if (space_.layer(layer).IsVersioned()) SetTensors(copy, layers_[layer]);
  const bool is_new = copies_[stage].emplace(layer, std::move(copy)).second;
  VERBATIM_CHECK(is_new, "{} is on stage {} already", space_.layer(layer).name, stage);
}

void LayerCopies::WriteBack(int stage, int layer) {
  Tensors copy;
  {
    const std::lock_guard lock(mutex_);
    copy = copies_[stage].at(layer);
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    home_[layer][i].copy_(copy[i], /*non_blocking=*/!device_.is_cpu());
  }
  home_versions_[layer] = layers_[layer].version;
}

void LayerCopies::GiveUp(const LayerCopy& copy) {
  CheckHome(copy.layer);
  std::unordered_map<int, Tensors>::node_type freed;
  const std::lock_guard lock(mutex_);
  freed = copies_[copy.stage].extract(copy.layer);
  VERBATIM_CHECK(!freed.empty(), "{} is not on stage {}", space_.layer(copy.layer).name,
                 copy.stage);
  if (space_.layer(copy.layer).IsVersioned()) SetTensors(home_[copy.layer], layers_[copy.layer]);
  room_bytes_[copy.stage] += BytesOf(freed.mapped());
}

std::vector<at::Tensor> LayerCopies::Parameters(int stage, int layer) const {
  const std::lock_guard lock(mutex_);
  const Tensors& copy = copies_[stage].at(layer);
  const auto count = static_cast<std::ptrdiff_t>(space_.layer(layer).parameters.size());
  return {copy.begin(), copy.begin() + count};
}

LayerState LayerCopies::Snapshot(int layer) const {
  const std::lock_guard lock(mutex_);
  return layers_[layer];
}

void LayerCopies::Hold(int stage, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  room_bytes_[stage] -= bytes;
  VERBATIM_CHECK(room_bytes_[stage] >= 0, "stage {} holds {} bytes too many", stage,
                 -room_bytes_[stage]);
}

void LayerCopies::CheckHome(int layer) const {
  VERBATIM_CHECK(home_versions_[layer] == layers_[layer].version,
                 "home has version {} of {}, not {}", home_versions_[layer],
                 space_.layer(layer).name, layers_[layer].version);
}

std::vector<LayerBytes> BytesOfLayers(const std::vector<LayerState>& layers) {
  std::vector<LayerBytes> bytes;
  for (const LayerState& state : layers) {
    bytes.push_back(
        {BytesOf(state.parameters), BytesOf(state.buffers) + BytesOf(state.optimizer_state)});
  }
  return bytes;
}

}  // namespace verbatim
