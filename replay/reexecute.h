// Executes a recorded run again, whole or in part, and hands what it computes to a sink. No
// LibTorch in this header.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "supernet/fault.h"
#include "trainer/ranks/launcher.h"

namespace verbatim {

/// Receives a re-execution as it goes. Called from one thread at a time, in the order of
/// declaration; OnSubnet once per subnet in ascending seq, whatever the layout.
class ReexecutionSink {
 public:
  virtual ~ReexecutionSink() = default;
  /// Called before anything is loaded. Returns false to end the re-execution here.
  virtual bool OnEnvironment(const std::vector<EnvironmentRow>& environment) = 0;
  virtual void OnDataset(const Digest& dataset) = 0;
  virtual void OnLayers(const std::vector<LayerRow>& layers) = 0;
  /// Returns false to stop the re-execution here.
  virtual bool OnSubnet(const SubnetRow& subnet) = 0;
  virtual void OnEvaluations(const std::vector<EvaluationRow>& evaluations) = 0;
};

class Network;
class StageProbe;

struct ReexecuteOptions {
  /// Where the data lies now, if not where the spec says.
  std::optional<std::filesystem::path> data_folder;
  /// As the record's environment says: it bears on the bits.
  std::int64_t threads_per_stage = 1;
  /// The layout. One stage with one subnet in flight is the sequential reference.
  std::int64_t stages = 1;
  std::int64_t in_flight = 1;
  std::string partition = "balanced";              ///< as MakePartition takes it
  std::optional<std::filesystem::path> cost_file;  ///< to balance by; absent: counted operations
  std::string recompute = "none";                  ///< as RecomputePlan::Make takes it
  /// As TrainingOptions::device_memory.
  std::optional<std::int64_t> device_memory;
  /// That it is a wish, for a layout that nobody chose: where the layout needs more, that much is
  /// taken; under a policy that keeps to no bound, all.
  bool wishes_device_memory = false;
  /// Empty: "sequential" on that layout, "causal" on any other.
  std::string policy;
  /// What is digested: "losses", "weights", "full"; empty: the record's level.
  std::string record_level;
  /// Subnets to execute, ascending, with all their causal predecessors (replay/plan.h).
  std::vector<std::int64_t> subnets;
  /// Whether to evaluate after the last subnet of the spec.
  bool evaluate = false;
  /// Once true, no further subnet is started. May be null.
  const std::atomic<bool>* stop = nullptr;
  /// Injected as `train --inject` does.
  std::optional<Fault> fault;
  /// Looks into the stages (trainer/stage_probe.h). May be null.
  StageProbe* probe = nullptr;
  /// To the other ranks, which train the same (TrainingOptions::network). Null: one process.
  Network* network = nullptr;
  LocalRank local;  ///< which share of this host's GPUs is this process's
  /// As TrainingOptions::has_stuck_stage.
  std::atomic<bool>* has_stuck_stage = nullptr;
};

/// Executes a record's spec under the layout of `options`. Stops with the sink's word. Errors are
/// kUsage (more stages than positions), kBadInput (the data is missing or cannot be read) or
/// kFailed (device, LibTorch, stopped on request).
Status Reexecute(const RunInfo& run, const ReexecuteOptions& options, ReexecutionSink& sink);

}  // namespace verbatim
