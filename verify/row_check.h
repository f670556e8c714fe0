// Whether one subnet's row agrees with the rest of its record: everything that can be said of it
// without executing anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/record.h"
#include "supernet/spec.h"
#include "verify/layer_table.h"

namespace verbatim {

/// What a spec says of every subnet's row.
struct RowRules {
  std::int64_t samples = 0;       ///< in a batch
  std::int64_t microbatches = 1;  ///< that it is cut into
};
RowRules RulesOf(const Spec& spec);

class RowCheck {
 public:
  /// Keeps references: `run` and `table` outlive it. A subnet may have been trained on the stages
  /// of the run or of any of its resumptions.
  RowCheck(const RunInfo& run, std::span<const ResumptionRow> resumptions, const RowRules& rules,
           const LayerTable& table);

  /// What is wrong with the row ("subnet 5 has no access of block3.1, which it chose"); nothing
  /// where it is sound. Accesses and activations ascend, as a reader gives them.
  std::optional<std::string> Problem(const SubnetRow& subnet) const;

  /// Whether the record's level has activations, so that they must be read for Problem.
  bool wants_activations() const { return full_; }

 private:
  std::optional<std::string> AccessSetProblem(const SubnetRow& subnet) const;
  std::optional<std::string> AccessProblem(const AccessRow& access) const;
  std::optional<std::string> ActivationProblem(const SubnetRow& subnet) const;

  const RunInfo& run_;
  RowRules rules_;
  const LayerTable& table_;
  std::int64_t stages_;  ///< most that any part of the run had
  bool weights_;         ///< level `weights` or `full`
  bool full_;
};

/// What is wrong with an evaluation's row; nothing where it is sound.
std::optional<std::string> EvaluationProblem(const EvaluationRow& row, const LayerTable& table);

/// What is wrong with the run's own row, one line each.
std::vector<std::string> RunProblems(const RunInfo& run);

}  // namespace verbatim
