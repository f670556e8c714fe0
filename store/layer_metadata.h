// What a checkpoint file says of the layer in it (docs/format.md, "Checkpoints"): texts in its
// metadata, so that the file can be checked and exported without the spec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/safetensors.h"

namespace verbatim {

/// Number of updates applied to a versioned layer, among its tensors.
inline constexpr const char* kStepTensor = "step";

struct LayerMetadata {
  std::string layer;                    ///< its name
  std::int64_t version = -1;            ///< seq of the subnet that wrote it
  std::vector<std::string> parameters;  ///< names of tensors, in the layer's order
  std::vector<std::string> buffers;     ///< likewise
  /// Names of the optimizer's state tensors per parameter: "momentum_buffer". None where it has
  /// none, or where the layer is frozen.
  std::vector<std::string> optimizer;
  bool has_step = false;  ///< a versioned layer's file has the tensor "step"
  /// Versions before this one that a layer with a delay still needs, ascending.
  std::vector<std::int64_t> earlier;

  bool operator==(const LayerMetadata&) const = default;
};

/// "weight.momentum_buffer".
std::string OptimizerTensorName(std::string_view parameter, std::string_view state);
/// "earlier.0.weight": of LayerMetadata::earlier[index].
std::string EarlierTensorName(std::size_t index, std::string_view parameter);

std::map<std::string, std::string> EncodeLayerMetadata(const LayerMetadata& metadata);
/// kBadInput where the file's texts are not exactly what EncodeLayerMetadata gives, or its tensors
/// not exactly those that they name.
Result<LayerMetadata> ReadLayerMetadata(const StoredTensors& file, const std::string& source);

/// The names of all tensors in the file: parameters, buffers, optimizer state by parameter, step,
/// earlier versions.
std::vector<std::string> TensorNames(const LayerMetadata& metadata);

}  // namespace verbatim
