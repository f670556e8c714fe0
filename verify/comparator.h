// Compares a re-execution with the record, as it goes, and stops it at the first difference (or
// goes on and collects them all).
//
// Within a subnet it looks in causal order, so that the first difference is an origin: choices,
// samples, batch bytes, versions read, activations in forward order, loss; then, from the head down
// to the stem as the backward pass goes, each access's base version, gradients, weights and
// optimizer state. Only what the record's level holds is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/reexecute.h"
#include "store/reader.h"
#include "verify/layer_table.h"
#include "verify/run_comparison.h"
#include "verify/verdict.h"

namespace verbatim {

/// Not thread-safe: all calls from the re-execution's thread.
class Comparator : public ReexecutionSink {
 public:
  struct Options {
    /// Whether to go on after the first difference, and tell origins from what they taint.
    bool keep_going = false;
    /// Whether to compare although the numeric environment is not the recorded one.
    bool any_environment = false;
    /// Told the number of subnets compared; may be empty.
    std::function<void(std::int64_t)> progress;
  };
  /// Keeps a reference to `reader`. `record` is the path as typed, for messages. Errors are the
  /// reader's.
  static Result<Comparator> Create(const RecordReader& reader, std::string record, Options options);

  bool OnEnvironment(const std::vector<EnvironmentRow>& environment) override;
  void OnDataset(const Digest& dataset) override;
  void OnLayers(const std::vector<LayerRow>& layers) override;
  bool OnSubnet(const SubnetRow& subnet) override;
  void OnEvaluations(const std::vector<EvaluationRow>& evaluations) override;

  /// Found equal to the record so far.
  std::int64_t subnets_equal() const { return comparison_->result().subnets_equal; }
  const std::optional<Difference>& difference() const { return difference_; }
  /// An error that ended the comparison: the record could not be read on, or this machine's numeric
  /// environment is not the recorded one.
  const Status& status() const { return status_; }

  /// Writes what was found into a verdict of the same record: its re-execution check, counts,
  /// environment differences and, where it is the earlier one, its first difference; with
  /// keep_going the whole comparison. Call once, at the end.
  void AddTo(Verdict& verdict);

 private:
  Comparator(const RecordReader& reader, std::string record, Options options)
      : reader_(&reader), record_(std::move(record)), options_(std::move(options)) {}

  void Report(Difference difference);
  void AddFirst(Verdict& verdict) const;

  const RecordReader* reader_;
  std::string record_;
  Options options_;
  RunInfo run_;
  std::vector<EnvironmentRow> environment_;
  std::unique_ptr<LayerTable> table_;
  std::optional<RunComparison> comparison_;
  std::vector<EnvironmentDifference> environment_differences_;
  bool is_comparable_ = true;  ///< whether both sides have the same layers
  bool evaluations_equal_ = false;
  std::optional<Difference> difference_;
  Status status_;
};

}  // namespace verbatim
