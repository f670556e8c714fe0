// What a layer of a step run is: one named tensor of the trainer's model (docs/format.md, "steps").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/dtype.h"
#include "store/record.h"

namespace verbatim {

enum class StepLayerKind {
  kParameter,  ///< versioned; may have a gradient and optimizer state
  kBuffer,     ///< versioned: batch-norm statistics, counters
  kCaptured,   ///< not versioned: tensors that a step makes, such as an activation, by their name
};

/// Ends a placement before other names, so that none may hold it; brackets alone may stand in one:
/// "Shard(dim=0) of [9,6]".
inline constexpr std::string_view kPlacementThenAlso = ") also ";

struct StepLayer {
  StepLayerKind kind = StepLayerKind::kParameter;
  std::string name;
  DType dtype = DType::kFloat32;    ///< of a captured one neither dtype nor shape is kept
  std::vector<std::int64_t> shape;  ///< what this process holds of it
  std::string placement;            ///< of one that is a part of a larger tensor: how; else empty
  std::vector<std::string> also;    ///< its other names, where weights are tied
  Digest initial_digest;            ///< before the first step; of a captured one zero
};

/// "parameter float32[128,64]", "buffer int64[]", "captured"; " (PLACEMENT)" and
/// " also NAME, NAME" follow where there are such.
std::string DescribeStepLayer(const StepLayer& layer);

/// What DescribeStepLayer says, read back.
struct StepLayerText {
  StepLayerKind kind = StepLayerKind::kParameter;
  std::string_view tensor;     ///< "float32[128,64]"; of a captured layer empty
  std::string_view placement;  ///< without its brackets
  std::string_view also;       ///< "NAME, NAME"
};
/// Into `op`; nothing where it is none.
std::optional<StepLayerText> ParseStepLayer(std::string_view op);

/// Rows of a record: layer and position are the index, candidate 0.
std::vector<LayerRow> StepLayerRows(std::span<const StepLayer> layers);

}  // namespace verbatim
