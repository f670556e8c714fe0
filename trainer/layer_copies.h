// The tensors of layers that move between host memory, their home, and the stages' devices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "schedule/device_memory.h"
#include "schedule/layer_cache.h"
#include "supernet/search_space.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// Knows where tensors are, not when they are to move: that is the LayerCache's to say, and what it
/// promises is what makes the calls below safe. Layers without a delay that have tensors take part.
///
/// `layers[id]` stays the live state of a layer that subnets write: its tensors are those of the
/// copy on a stage while there is one, else those at home, and its numbers stay where they are. Of
/// a layer that nobody writes it keeps the tensors at home, and stages read their own copies.
class LayerCopies {
 public:
  /// `device` is that of all stages. Where it is none of the host, tensors at home are pinned.
  /// `room_bytes`: what copies may take, by stage. References outlive it.
  LayerCopies(const SearchSpace& space, std::vector<LayerState>& layers, at::Device device,
              std::vector<std::int64_t> room_bytes);

  /// Copies a layer from home to a stage. Any thread, and for as long as that takes; so WriteBack.
  void Load(int stage, int layer);
  /// Copies a layer from a stage to home. The copy stays.
  void WriteBack(int stage, int layer);
  /// Frees a copy whose content is at home.
  void GiveUp(const LayerCopy& copy);

  /// The tensors of `layers[layer]` have been replaced, or have gone, while no stage had a copy:
  /// what is there now is at home.
  void Rehouse(int layer);

  /// The parameters that a subnet reads of a layer that nobody writes, and that is on the stage.
  std::vector<at::Tensor> Parameters(int stage, int layer) const;
  /// A layer's state with the tensors that it has now, for somebody who reads them while the layer
  /// may move.
  LayerState Snapshot(int layer) const;

 private:
  using Tensors = std::vector<at::Tensor>;  ///< parameters, buffers, optimizer state

  void Hold(int stage, std::int64_t bytes);
  void CheckHome(int layer) const;

  const SearchSpace& space_;
  std::vector<LayerState>& layers_;
  const at::Device device_;
  std::vector<Tensors> home_;                ///< by layer; empty where it takes no part, or is away
  std::vector<std::int64_t> home_versions_;  ///< by layer: LayerState::version of what home holds

  mutable std::mutex mutex_;  ///< guards which tensors there are, below and in `layers_`
  std::vector<std::unordered_map<int, Tensors>> copies_;  ///< by stage, then by layer
  std::vector<std::int64_t> room_bytes_;                  ///< by stage: what is left
};

/// What every layer takes on a device.
std::vector<LayerBytes> BytesOfLayers(const std::vector<LayerState>& layers);

}  // namespace verbatim
