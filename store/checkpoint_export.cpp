#include "store/checkpoint_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "store/checkpoint_files.h"
#include "store/layer_metadata.h"

namespace verbatim {
namespace {

/// Names in the file of the tensors to export.
std::vector<std::string> NamesToExport(const LayerMetadata& metadata, bool optimizer) {
  LayerMetadata exported = metadata;
  exported.earlier.clear();
  if (!optimizer) {
    exported.optimizer.clear();
    exported.has_step = false;
  }
  return TensorNames(exported);
}

Status AddLayer(const std::filesystem::path& folder, const CheckpointLayer& stored,
                const LayerRow& row, bool optimizer, ExportedTensors& exported) {
  const std::string source = (folder / CheckpointFileName(stored.file)).string();
  ASSIGN_OR_RETURN(std::string bytes, ReadCheckpointFile(folder, stored.file));
  exported.files.push_back(std::make_unique<std::string>(std::move(bytes)));
  ASSIGN_OR_RETURN(const StoredTensors file, ParseSafetensors(*exported.files.back(), source));
  ASSIGN_OR_RETURN(const LayerMetadata metadata, ReadLayerMetadata(file, source));
  if (metadata.layer != row.name || metadata.version != stored.version) {
    return BadInput(fmt::format("{} holds {} at version {}, where the record has {} at version {}",
                                source, metadata.layer, metadata.version, row.name, stored.version),
                    "use another checkpoint");
  }
  for (const std::string& name : NamesToExport(metadata, optimizer)) {
    StoredTensor tensor = *file.Find(name);
    tensor.name = fmt::format("{}.{}", row.name, name);
    exported.content.tensors.push_back(std::move(tensor));
  }
  return {};
}

}  // namespace

Result<CheckpointRow> ChooseCheckpoint(const std::vector<CheckpointRow>& checkpoints,
                                       std::optional<std::int64_t> cut, const std::string& record) {
  if (checkpoints.empty()) {
    return BadInput(fmt::format("{} has no checkpoint", record),
                    "a run that is trained to its end, or stopped with Ctrl-C, leaves one unless "
                    "it was made with --keep-checkpoints 0");
  }
  if (!cut) return checkpoints.back();
  std::vector<std::int64_t> cuts;
  for (const CheckpointRow& checkpoint : checkpoints) {
    if (checkpoint.cut == *cut) return checkpoint;
    cuts.push_back(checkpoint.cut);
  }
  return BadInput(fmt::format("{} has no checkpoint at {}", record, *cut),
                  fmt::format("it has: {}", fmt::join(cuts, ", ")));
}

Result<ExportedTensors> ExportLayers(const std::filesystem::path& folder,
                                     const CheckpointRow& checkpoint,
                                     const std::vector<LayerRow>& layers, bool optimizer) {
  ExportedTensors exported;
  std::vector<std::string> versions;
  for (const LayerRow& row : layers) {
    if (row.layer < 0 || row.layer >= std::ssize(checkpoint.layers)) {
      return BadInput(fmt::format("the checkpoint at {} has no layer {}", checkpoint.cut, row.name),
                      "check the record with verbatim verify");
    }
    const CheckpointLayer& stored = checkpoint.layers[static_cast<std::size_t>(row.layer)];
    RETURN_IF_ERROR(AddLayer(folder, stored, row, optimizer, exported));
    versions.push_back(fmt::format("{}={}", row.name, stored.version));
  }
  exported.content.metadata = {{"cut", std::to_string(checkpoint.cut)},
                               {"versions", fmt::format("{}", fmt::join(versions, ","))}};
  return exported;
}

}  // namespace verbatim
