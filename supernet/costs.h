// What a layer costs: time per task, bytes kept and moved. Used to balance stages and to simulate;
// no cost bears on a run's bits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// Of one application of a layer to one whole micro-batch (MicrobatchRows(…, 0) rows).
struct LayerCost {
  double forward = 0.0;               ///< in the table's unit of time
  double backward = 0.0;              ///< likewise
  double update = 0.0;                ///< likewise, once per subnet
  std::int64_t activation_bytes = 0;  ///< kept from forward to backward, input included
  std::int64_t output_bytes = 0;      ///< handed to the next position
  std::int64_t parameter_bytes = 0;   ///< parameters and buffers
  std::int64_t optimizer_bytes = 0;   ///< optimizer state
  bool operator==(const LayerCost&) const = default;
};

enum class CostSource {
  kEqual,     ///< unit: one block's forward over the whole batch
  kAnalytic,  ///< unit: one floating-point operation
  kMeasured,  ///< unit: one second
};

struct CostTable {
  CostSource source = CostSource::kEqual;
  std::vector<LayerCost> layers;  ///< by layer id
  bool operator==(const CostTable&) const = default;
};

/// The unit's name in files: "block", "operation", "second".
std::string_view UnitOf(CostSource source);

/// Every block costs 1 forward and 2 backward per batch, stem and head nothing. Bytes as
/// AnalyticCosts.
CostTable EqualCosts(const SearchSpace& space, const Spec& spec);

/// Floating-point operations counted from the shapes, and bytes of float32 tensors.
CostTable AnalyticCosts(const SearchSpace& space, const Spec& spec);

/// The cost file's text (docs/format.md, "Cost file"): names the space by its layers, so that it is
/// not taken for another one's.
std::string CostsToJson(const CostTable& costs, const SearchSpace& space, const Spec& spec);

/// Reads a cost file's text; `source` names it in messages. BadInput as ReadCosts.
Result<CostTable> ParseCosts(const std::string& text, const std::string& source,
                             const SearchSpace& space, const Spec& spec);

/// A cost file as it is. BadInput where it cannot be read.
Result<std::string> ReadCostText(const std::filesystem::path& path);

/// Reads a cost file. BadInput where it cannot be read, is malformed, or was measured for another
/// space or micro-batch, naming the first layer that differs.
Result<CostTable> ReadCosts(const std::filesystem::path& path, const SearchSpace& space,
                            const Spec& spec);

}  // namespace verbatim
