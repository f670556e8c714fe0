// One pass over a record's subnets: rows, stream, causality and trees together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/reader.h"
#include "verify/causal_audit.h"
#include "verify/layer_table.h"
#include "verify/stream_check.h"
#include "verify/tree_check.h"
#include "verify/verdict.h"

namespace verbatim {

/// What every row is held against.
struct RowExpectation {
  /// What is wrong with a row; nothing where it is sound.
  std::function<std::optional<std::string>(const SubnetRow&)> problem;
  bool wants_activations = false;  ///< `problem` looks at them
  std::int64_t planned = 0;        ///< subnets that the spec asks for; 0: unknown
};

/// Adds what it finds to a verdict as it goes. Not thread-safe.
class SubnetPass {
 public:
  /// Keeps references. `verdict` holds the run already. `stream`: null for a step run.
  SubnetPass(Verdict& verdict, const LayerTable& table, RowExpectation rows, StreamCheck* stream,
             TreeCheck& trees);

  ReadOptions options() const { return {true, rows_.wants_activations, true}; }
  /// All subnets, in the order in which they are read. False where the row is damaged.
  bool Visit(const SubnetRow& subnet);
  /// Why the subnets from here on cannot be read.
  void Stop(const Error& error);
  /// The checks of subnets, stream and causality. Call once, at the end.
  std::vector<Check> Finish();

 private:
  bool MayHaveGaps() const {
    return verdict_.run.status == RunStatus::kRunning || verdict_.run.status == RunStatus::kFailed;
  }
  std::optional<std::string> RowProblem(const SubnetRow& subnet);
  void Damage(std::int64_t seq, std::string problem);
  void CheckSequence(std::int64_t seq);
  void CompareStream(const SubnetRow& subnet);
  void Audit(const SubnetRow& subnet);
  void AuditOutside(const SubnetRow& step);
  void CheckCount();
  bool is_steps() const { return verdict_.run.kind == RunKind::kSteps; }
  std::int64_t RowsAffected() const;
  Check StreamResult() const;
  Check CausalityResult() const;

  Verdict& verdict_;
  const LayerTable& table_;
  RowExpectation rows_;
  StreamCheck* stream_;
  TreeCheck& trees_;
  CausalAudit audit_;
  Check subnets_;
  std::int64_t next_seq_ = 0;
  std::int64_t nan_losses_ = 0;
  std::int64_t stream_differences_ = 0;
  std::int64_t stream_compared_ = 0;
  std::optional<std::int64_t> last_step_;  ///< of a step run: that was audited
  std::int64_t outside_writes_ = 0;
  std::int64_t steps_with_outside_writes_ = 0;
  std::vector<std::string> outside_problems_;  ///< the first kProblemsShown
  std::string audit_stop_;  ///< why the audit ended before the last row, or empty
};

}  // namespace verbatim
