// Writes what a re-execution computes into a record of its own, and hands it on.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "replay/reexecute.h"
#include "store/writer.h"

namespace verbatim {

/// Not thread-safe, like every sink. After a failed write it stops the re-execution; Close tells.
class RecordingSink : public ReexecutionSink {
 public:
  /// `run` describes the replay: the replayed run's, with its own layout, command line and start.
  /// The record is created at `path` once the layers are known. Keeps a reference to `next`.
  RecordingSink(std::filesystem::path path, RunInfo run, bool overwrite, ReexecutionSink& next)
      : path_(std::move(path)), run_(std::move(run)), overwrite_(overwrite), next_(next) {}

  bool OnEnvironment(const std::vector<EnvironmentRow>& environment) override;
  void OnDataset(const Digest& dataset) override;
  void OnLayers(const std::vector<LayerRow>& layers) override;
  bool OnSubnet(const SubnetRow& subnet) override;
  void OnEvaluations(const std::vector<EvaluationRow>& evaluations) override;

  /// Ends the record: "complete" where it holds every subnet of the spec and its evaluations, else
  /// "interrupted", with `why` as its detail. Returns the first error. Call once, after the
  /// re-execution.
  Status Close(const std::string& why);

 private:
  void Flush();

  std::filesystem::path path_;
  RunInfo run_;
  bool overwrite_;
  ReexecutionSink& next_;
  std::vector<EnvironmentRow> environment_;
  std::unique_ptr<RecordWriter> writer_;
  std::vector<SubnetRow> batch_;
  std::int64_t subnets_ = 0;
  std::vector<EvaluationRow> evaluations_;
  Status status_;
};

}  // namespace verbatim
