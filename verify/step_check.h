// Whether one row of a step run agrees with the rest of its record: what RowCheck is for subnets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recorder/step_layer.h"
#include "recorder/step_spec.h"
#include "store/record.h"
#include "verify/layer_table.h"

namespace verbatim {

/// What is wrong with the layers of a step run; nothing where each says what it is.
std::optional<std::string> StepLayersProblem(const std::vector<LayerRow>& layers);

/// Rows in ascending seq. Not thread-safe.
class StepCheck {
 public:
  /// Keeps references: `run` and `table` outlive it. StepLayersProblem found nothing.
  StepCheck(const RunInfo& run, const StepSpec& spec, const LayerTable& table);

  /// What is wrong with the row ("step 120 has no access of fc.weight"); nothing where it is sound.
  std::optional<std::string> Problem(const SubnetRow& row);

  bool wants_activations() const { return full_; }

 private:
  std::optional<std::string> FactsProblem(const SubnetRow& row);
  std::optional<std::string> AccessesProblem(const SubnetRow& row) const;
  std::optional<std::string> AccessProblem(std::int64_t seq, const AccessRow& access) const;
  std::optional<std::string> CapturedProblem(const SubnetRow& row) const;
  bool IsVersioned(std::int32_t layer) const;

  const RunInfo& run_;
  const LayerTable& table_;
  std::vector<StepLayerKind> kinds_;     ///< by layer
  std::vector<std::int32_t> versioned_;  ///< layers, ascending
  bool weights_;                         ///< level `weights` or `full`
  bool optimizer_state_;                 ///< parameters may have it
  bool gradients_;                       ///< likewise
  bool full_;
  std::optional<std::int64_t> last_step_;
};

}  // namespace verbatim
