// The first difference, in causal order, between two rows of one step: writes from outside, batch,
// hyper-parameters, random state, captured tensors, loss, buffers, and from the last parameter to
// the first gradients, weights and optimizer state.
#pragma once

#include <optional>

#include "store/record.h"
#include "verify/difference.h"
#include "verify/layer_table.h"
#include "verify/layer_versions.h"

namespace verbatim {

/// Two rows of a StepProjection, over its common layers. The difference has class, place, values
/// and cause; no next command.
class StepComparison {
 public:
  /// Keeps references. `replicas`: buffers come last, which each replica may have for itself.
  StepComparison(const LayerTable& table, const SideNames& names, const SubnetRow& a,
                 const SubnetRow& b, bool replicas = false)
      : table_(table), names_(names), a_(a), b_(b), replicas_(replicas) {}

  std::optional<Difference> First() const;
  /// Only of what depends on no weights: what comes before the captured tensors.
  std::optional<Difference> FirstInput() const;
  /// Whether there is any, but for accesses.
  bool RowsDiffer() const;

 private:
  Difference At(DifferenceClass kind, std::string what) const;
  Difference AtLayer(DifferenceClass kind, std::string what, std::int32_t layer, Phase phase) const;
  std::optional<Difference> Outside() const;
  std::optional<Difference> Batch() const;
  std::optional<Difference> Parts() const;
  std::optional<Difference> Settings() const;
  std::optional<Difference> RandomState() const;
  std::optional<Difference> Captured() const;
  std::optional<Difference> Loss() const;
  std::optional<Difference> Layers() const;
  std::optional<Difference> Buffers() const;
  std::optional<Difference> Parameters() const;
  std::optional<Difference> AtDigest(const char* what, Phase phase, std::size_t access,
                                     std::optional<Digest> AccessRow::*digest,
                                     const char* cause) const;
  std::string EqualInputs() const;

  const LayerTable& table_;
  const SideNames& names_;
  const SubnetRow& a_;
  const SubnetRow& b_;
  bool replicas_;
};

}  // namespace verbatim
