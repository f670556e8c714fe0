// Weights out of a checkpoint, for programs that know nothing of records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "store/safetensors.h"

namespace verbatim {

/// Tensors of several layers, with the bytes that they are views into. Moves, but does not copy.
struct ExportedTensors {
  StoredTensors content;
  std::vector<std::unique_ptr<std::string>> files;
};

/// The checkpoint at `cut`, or the newest. kBadInput where the record has none, or not that one:
/// the error says which there are, and what makes one. `record` is the path as typed.
Result<CheckpointRow> ChooseCheckpoint(const std::vector<CheckpointRow>& checkpoints,
                                       std::optional<std::int64_t> cut, const std::string& record);

/// The layers' weights and buffers, and with `optimizer` their optimizer state, named
/// "block3.1.weight"; all in memory. The metadata says the version of every layer ("versions":
/// "stem=15,block1.0=12") and the cut. kBadInput where a file in `folder` is missing or damaged, or
/// is not that layer's; kFailed where it cannot be read. `layers` are rows of the record that the
/// checkpoint is of, by id.
Result<ExportedTensors> ExportLayers(const std::filesystem::path& folder,
                                     const CheckpointRow& checkpoint,
                                     const std::vector<LayerRow>& layers, bool optimizer);

}  // namespace verbatim
