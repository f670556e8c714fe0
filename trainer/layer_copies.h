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
#include "trainer/device_stream.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// A stage's device, and what copies may take there.
struct StageRoom {
  at::Device device = at::kCPU;
  std::int64_t bytes = 0;
};

/// Knows where tensors are, not when they are to move: that is the LayerCache's to say, and what it
/// promises is what makes the calls below safe. Layers without a delay that have tensors take part.
///
/// `layers[id]` stays the live state of a layer that subnets write: its tensors are those of the
/// copy on a stage while there is one, else those at home, and its numbers stay where they are. Of
/// a layer that nobody writes it keeps the tensors at home, and stages read their own copies.
///
/// Where devices compute behind their host, copies are enqueued on the streams of those who make
/// them, and marks (trainer/device_stream.h) go with the tensors: a load comes after what wrote the
/// home, a stage's use after the load, a write-back after the update, and the next use after that.
class LayerCopies {
 public:
  /// By stage. Where a device is none of the host, tensors at home are pinned. References outlive
  /// it.
  LayerCopies(const SearchSpace& space, std::vector<LayerState>& layers,
              std::vector<StageRoom> rooms);

  /// When what a transfer copies has its values: its stream waits for that before it begins.
  Mark SourceOf(const Transfer& transfer) const;
  /// Copies a layer from home to a stage, on the calling thread's stream. Any thread, and for as
  /// long as that takes; so WriteBack. When it is done there.
  Mark Load(int stage, int layer, DeviceStream& stream);
  /// Copies a layer from a stage to home. The copy stays.
  Mark WriteBack(int stage, int layer, DeviceStream& stream);
  /// Frees a copy whose content is at home: on its device after the last use by a stream that has
  /// said so (DeviceStream::Uses).
  void GiveUp(const LayerCopy& copy);

  /// The tensors of `layers[layer]` have been replaced, or have gone, while no stage had a copy:
  /// what is there now is at home.
  void Rehouse(int layer);

  /// What a subnet reads of a layer that nobody writes, and that is on the stage.
  LayerRead Read(int stage, int layer) const;
  /// A layer's state with the tensors that it has now, for somebody who reads them while the layer
  /// may move.
  LayerState Snapshot(int layer) const;

 private:
  using Tensors = std::vector<at::Tensor>;  ///< parameters, buffers, optimizer state
  struct Held {
    Tensors tensors;
    Mark written = nullptr;
  };
  struct Home {
    Tensors tensors;            ///< none where the layer takes no part, or is away
    std::int64_t version = -1;  ///< LayerState::version of what they hold
    Mark written = nullptr;
  };

  void Hold(int stage, std::int64_t bytes);
  void CheckHome(int layer) const;

  const SearchSpace& space_;
  std::vector<LayerState>& layers_;
  bool is_pinned_ = false;  ///< tensors at home
  std::vector<Home> home_;  ///< by layer

  mutable std::mutex mutex_;  ///< guards which tensors there are, below and in `layers_`
  std::vector<std::unordered_map<int, Held>> copies_;  ///< by stage, then by layer
  std::vector<StageRoom> rooms_;                       ///< by stage: what is left
};

/// What every layer takes on a device.
std::vector<LayerBytes> BytesOfLayers(const std::vector<LayerState>& layers);

}  // namespace verbatim
