#include "trainer/checkpoint_loader.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "store/checkpoint_files.h"
#include "store/safetensors.h"
#include "trainer/layer_file.h"

namespace verbatim {
namespace {

Result<LayerState> LoadLayer(const std::filesystem::path& folder, const CheckpointLayer& layer,
                             const Layer& described, const Experiment& experiment) {
  const std::string source = (folder / CheckpointFileName(layer.file)).string();
  ASSIGN_OR_RETURN(const std::string bytes, ReadCheckpointFile(folder, layer.file));
  ASSIGN_OR_RETURN(const StoredTensors stored, ParseSafetensors(bytes, source));
  return RestoreLayerState(described, experiment.spec.training.optimizer, layer.version, stored,
                           experiment.home, source);
}

}  // namespace

Status LoadCheckpoint(const std::filesystem::path& folder, const CheckpointRow& checkpoint,
                      Experiment& experiment) {
  const std::vector<Layer>& layers = experiment.space.layers();
  if (checkpoint.layers.size() != layers.size()) {
    return BadInput(fmt::format("the checkpoint at {} has {} layers, and the spec has {}",
                                checkpoint.cut, checkpoint.layers.size(), layers.size()),
                    "use another checkpoint");
  }
  std::vector<LayerState> loaded;
  loaded.reserve(layers.size());
  for (const Layer& layer : layers) {
    const CheckpointLayer& file = checkpoint.layers[layer.id];
    if (file.version < -1 || file.version >= checkpoint.cut) {
      return BadInput(fmt::format("the checkpoint at {} has {} at version {}", checkpoint.cut,
                                  layer.name, file.version),
                      "use another checkpoint");
    }
    ASSIGN_OR_RETURN(LayerState state, LoadLayer(folder, file, layer, experiment));
    loaded.push_back(std::move(state));
  }
  experiment.layers = std::move(loaded);
  return {};
}

}  // namespace verbatim
