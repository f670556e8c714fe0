// How a stage comes by the layers that its subnets use: on its device, once they are written.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "supernet/search_space.h"
#include "trainer/device_stream.h"
#include "trainer/layer_state.h"
#include "trainer/run_context.h"

namespace verbatim {

/// A layer is where the stage that used it last left it. The scheduler says when it is a subnet's
/// turn; here its stage waits for what was enqueued on the layer before, and fetches the layer from
/// the device where it is. Of layers that subnets of several stages read at once (frozen ones, and
/// versions of those with a delay), a stage fetches copies. The stage's thread.
class LayerHandover {
 public:
  /// References outlive it.
  LayerHandover(const RunContext& context, int stage, DeviceStream& stream)
      : context_(context), stage_(stage), stream_(stream) {}

  /// What subnet `seq` reads, with tensors that the stage's stream can use after this.
  LayerRead Read(const Layer& layer, std::int64_t seq);
  /// A state with parameters of its own, for the update of a layer with a delay.
  LayerState TakeForUpdate(const Layer& layer) const;

 private:
  /// Leaves of the stage's device.
  void BringLeaves(std::vector<at::Tensor>& tensors) const;
  void BringState(LayerState& state) const;

  const RunContext& context_;
  const int stage_;
  DeviceStream& stream_;
  std::unordered_map<int, LayerRead> frozen_;  ///< by layer
};

/// Leaves on `device`: the tensors themselves where they are there. Waits for copies from there.
std::vector<at::Tensor> LeavesOn(at::Device device, const std::vector<at::Tensor>& tensors);

/// All layers on `home`, where everything enqueued is done: before others than stages use them.
void BringHome(std::vector<LayerState>& layers, at::Device home);

}  // namespace verbatim
