// Executes a recorded run again and hands what it computes to a sink. No LibTorch in this header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/status.h"
#include "store/record.h"

namespace verbatim {

/// Receives a re-execution as it goes. Called from one thread, in the order of declaration;
/// OnSubnet once per subnet in ascending seq.
class ReexecutionSink {
 public:
  virtual ~ReexecutionSink() = default;
  virtual void OnEnvironment(const std::vector<EnvironmentRow>& environment) = 0;
  virtual void OnDataset(const Digest& dataset) = 0;
  virtual void OnLayers(const std::vector<LayerRow>& layers) = 0;
  /// Returns false to stop the re-execution here.
  virtual bool OnSubnet(const SubnetRow& subnet) = 0;
  virtual void OnEvaluations(const std::vector<EvaluationRow>& evaluations) = 0;
};

struct ReexecuteOptions {
  /// Where the data lies now, if not where the spec says.
  std::optional<std::filesystem::path> data_folder;
  /// As the record's environment says: it bears on the bits.
  std::int64_t threads_per_stage = 1;
  /// Subnets 0 … subnets-1 are executed.
  std::int64_t subnets = 0;
  /// Whether the record has evaluations to compare with.
  bool evaluate = false;
};

/// Runs the sequential reference of a record's spec: one subnet after another on one stage.
/// Stops with the sink's word; errors are kBadInput (data missing or changed) or kFailed.
Status ReexecuteSequentially(const RunInfo& run, const ReexecuteOptions& options,
                             ReexecutionSink& sink);

}  // namespace verbatim
