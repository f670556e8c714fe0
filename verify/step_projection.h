// Rows of two step runs in terms of what both have: common layers, and the step that both recorded
// before. What only one of them holds is taken out of both, so that it is no difference.
#pragma once

#include <cstdint>
#include <set>

#include "store/record.h"
#include "verify/layer_matching.h"

namespace verbatim {

/// Which of what two rows hold is compared.
struct StepScope {
  bool losses = true;           ///< both runs have any
  bool optimizer_state = true;  ///< likewise
  bool gradients = true;        ///< likewise
  /// The runs are replicas of one model that see other batches: what follows from a batch alone
  /// (losses, gradients, captured tensors, random state) differs by design.
  bool replicas = false;
};

class StepProjection {
 public:
  /// Keeps a reference.
  StepProjection(const LayerMatching& matching, const StepScope& scope)
      : matching_(matching), scope_(scope) {}

  /// Two sound rows of the same step. Their seq becomes its number; versions become `before`, the
  /// last step that both have, or -1. What a side lacks although it records such things becomes a
  /// digest of zeros. `whole_model`: the last of the common layers stands for all of the model;
  /// each step gets an access of it, without digests.
  void Project(const SubnetRow& a, const SubnetRow& b, std::int64_t before,
               bool whole_model = false);
  /// Sound rows that the other side lacks: what was written from outside before them was so before
  /// the next step that both have, too.
  void SkipOfA(const SubnetRow& row) { KeepOutside(row, skipped_of_a_); }
  void SkipOfB(const SubnetRow& row) { KeepOutside(row, skipped_of_b_); }
  /// Of the rows at hand, where they tell of writes since another step each.
  void LeaveOutOutside();
  const SubnetRow& a() const { return a_; }
  const SubnetRow& b() const { return b_; }

 private:
  void Take(const SubnetRow& row, const std::vector<std::int32_t>& common, std::int64_t before,
            std::set<std::int32_t>& skipped, SubnetRow& into) const;
  static void KeepOutside(const SubnetRow& row, std::set<std::int32_t>& skipped) {
    skipped.insert(row.step->outside.begin(), row.step->outside.end());
  }
  void LeaveOutWhatOneLacks();

  const LayerMatching& matching_;
  StepScope scope_;
  std::set<std::int32_t> skipped_of_a_;  // layers, by their ids there
  std::set<std::int32_t> skipped_of_b_;
  SubnetRow a_;
  SubnetRow b_;
};

}  // namespace verbatim
