#include "trainer/layer_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
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

/// Pinned where that lets a device copy while its host goes on.
at::Tensor AtHome(const at::Tensor& tensor, bool is_pinned) {
  if (!is_pinned || tensor.is_pinned()) return tensor;
  return tensor.detach().pin_memory().requires_grad_(tensor.requires_grad());
}

/// A leaf as `original` is, in memory of its own on `device`.
at::Tensor CopyTo(at::Device device, const at::Tensor& original) {
  at::Tensor copy = at::empty_like(original, original.options().device(device));
  copy.copy_(original, /*non_blocking=*/!device.is_cpu());
  return copy.requires_grad_(original.requires_grad());
}

}  // namespace

LayerCopies::LayerCopies(const SearchSpace& space, std::vector<LayerState>& layers,
                         std::vector<StageRoom> rooms)
    : space_(space),
      layers_(layers),
      is_pinned_(
          std::ranges::any_of(rooms, [](const StageRoom& room) { return !room.device.is_cpu(); })),
      home_(layers.size()),
      copies_(rooms.size()),
      rooms_(std::move(rooms)) {
  for (const Layer& layer : space.layers()) Rehouse(layer.id);
}

void LayerCopies::Rehouse(int layer) {
  LayerState& state = layers_[layer];
  if (space_.layer(layer).delay > 0) return;
  Home& home = home_[layer];
  home = {TensorsOf(state), state.version, state.written};
  for (at::Tensor& tensor : home.tensors) {
    VERBATIM_CHECK(tensor.is_cpu(), "{} is not at home", space_.layer(layer).name);
    tensor = AtHome(tensor, is_pinned_);
  }
  SetTensors(home.tensors, state);
}

Mark LayerCopies::SourceOf(const Transfer& transfer) const {
  const bool is_load = transfer.kind == Transfer::Kind::kLoad;
  return is_load ? home_[transfer.layer].written : layers_[transfer.layer].written;
}

Mark LayerCopies::Load(int stage, int layer, DeviceStream& stream) {
  CheckHome(layer);
  const at::NoGradGuard no_grad;
  const Tensors& home = home_[layer].tensors;
  Hold(stage, BytesOf(home));
  Held copy;
  copy.tensors.reserve(home.size());
  for (const at::Tensor& tensor : home) {
    copy.tensors.push_back(CopyTo(rooms_[stage].device, tensor));
  }
  copy.written = stream.Record();
  const Mark done = copy.written;
  const std::lock_guard lock(mutex_);
  if (space_.layer(layer).IsVersioned()) {
    SetTensors(copy.tensors, layers_[layer]);
    layers_[layer].written = done;
  }
  const bool is_new = copies_[stage].emplace(layer, std::move(copy)).second;
  VERBATIM_CHECK(is_new, "{} is on stage {} already", space_.layer(layer).name, stage);
  return done;
}

Mark LayerCopies::WriteBack(int stage, int layer, DeviceStream& stream) {
  Tensors copy;
  {
    const std::lock_guard lock(mutex_);
    copy = copies_[stage].at(layer).tensors;
  }
  const at::NoGradGuard no_grad;
  Home& home = home_[layer];
  for (std::size_t i = 0; i < copy.size(); ++i) {
    home.tensors[i].copy_(copy[i], /*non_blocking=*/!copy[i].is_cpu());
    stream.Uses(copy[i]);
  }
  home.written = stream.Record();
  home.version = layers_[layer].version;
  // Who uses the copy next changes it.
  const std::lock_guard lock(mutex_);
  layers_[layer].written = home.written;
  return home.written;
}

void LayerCopies::GiveUp(const LayerCopy& copy) {
  CheckHome(copy.layer);
  std::unordered_map<int, Held>::node_type freed;
  const std::lock_guard lock(mutex_);
  freed = copies_[copy.stage].extract(copy.layer);
  VERBATIM_CHECK(!freed.empty(), "{} is not on stage {}", space_.layer(copy.layer).name,
                 copy.stage);
  if (space_.layer(copy.layer).IsVersioned()) {
    SetTensors(home_[copy.layer].tensors, layers_[copy.layer]);
    layers_[copy.layer].written = home_[copy.layer].written;
  }
  rooms_[copy.stage].bytes += BytesOf(freed.mapped().tensors);
}

LayerRead LayerCopies::Read(int stage, int layer) const {
  const std::lock_guard lock(mutex_);
  const Held& copy = copies_[stage].at(layer);
  const auto count = static_cast<std::ptrdiff_t>(space_.layer(layer).parameters.size());
  return {
      layers_[layer].version, {copy.tensors.begin(), copy.tensors.begin() + count}, copy.written};
}

LayerState LayerCopies::Snapshot(int layer) const {
  const std::lock_guard lock(mutex_);
  return layers_[layer];
}

void LayerCopies::Hold(int stage, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::int64_t& left = rooms_[stage].bytes;
  left -= bytes;
  VERBATIM_CHECK(left >= 0, "stage {} holds {} bytes too many", stage, -left);
}

void LayerCopies::CheckHome(int layer) const {
  VERBATIM_CHECK(home_[layer].version == layers_[layer].version,
                 "home has version {} of {}, not {}", home_[layer].version,
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
