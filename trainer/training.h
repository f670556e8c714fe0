// The run loop: a thread per stage, driven by the scheduler (docs/architecture.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "recorder/observer.h"
#include "recorder/part_sink.h"
#include "schedule/layer_cache.h"
#include "schedule/task.h"
#include "store/record.h"
#include "supernet/costs.h"
#include "trainer/checkpoint_settings.h"
#include "trainer/device_payloads.h"
#include "trainer/device_stream.h"
#include "trainer/experiment.h"
#include "trainer/stage_probe.h"

namespace verbatim {

class Network;

/// A run's layout and what watches it. But for `threads_per_stage`, which belongs to the numeric
/// environment, and a `sequence` that is no causal cone, nothing here changes a bit of a causal
/// run.
struct TrainingOptions {
  std::int64_t stages = 1;
  std::int64_t in_flight = 4;
  std::int64_t threads_per_stage = 1;
  std::string partition = "balanced";  ///< as MakePartition takes it
  std::optional<CostTable> costs;      ///< to balance by; absent: AnalyticCosts
  std::string recompute = "none";      ///< as RecomputePlan::Make takes it
  /// Which subnets to train, ascending; absent: all of the stream. To get the bits of the whole
  /// stream, every subnet's causal predecessors must be among them (schedule/causal_cone.h).
  std::optional<std::vector<std::int64_t>> sequence;
  /// Subnets below it are done, and the experiment's layers are as they left them (LoadCheckpoint):
  /// training goes on with it. 0 where there is a `sequence`.
  std::int64_t first = 0;
  /// What the run's clock says when training begins: 0, or, of a run that goes on, how long ago its
  /// start was.
  std::int64_t begin_ns = 0;
  std::string policy = "causal";
  RecordLevel record_level = RecordLevel::kWeights;
  bool stop_on_nan = true;
  Observer* observer = nullptr;             ///< null: nothing is digested
  const std::atomic<bool>* stop = nullptr;  ///< once true, no further subnet is admitted
  /// Whole streams under a causal policy only.
  CheckpointSettings checkpoints;
  /// Subnets finished so far, those below `first` too, and the newest one's loss; one call at a
  /// time.
  std::function<void(std::int64_t finished, float loss)> on_progress;
  StageProbe* probe = nullptr;  ///< null: nobody looks into the stages
  /// What each stage may hold of layers, in bytes: parameters, buffers and optimizer state. The
  /// others stay at home, in host memory (docs/device-memory.md). At least LeastDeviceMemoryOf;
  /// policies "causal" and "sequential". Absent: all layers are where the stages are.
  std::optional<std::int64_t> device_memory;
  /// That it is known to be enough: CheckTraining, which looks at every subnet of the stream for
  /// that, does not look again.
  bool is_memory_checked = false;
  /// Absent: LibTorch's streams, of devices that have any. A device of another kind, for tests.
  std::optional<OpenStream> open_stream;
  /// Absent: on several ranks NCCL's channels between GPUs, none between CPUs. Others, for tests.
  std::optional<OpenPayloads> open_payloads;

  /// Where the stages are in several processes: between the ranks, connected and not started. Every
  /// rank trains under the same options, but for what is said here. Rank 0 alone has an observer,
  /// checkpoints and progress; the others only need to know that it does. Policy "causal" only.
  Network* network = nullptr;  ///< null: one process
  bool is_observed = false;    ///< other ranks: that rank 0 has an observer
  /// Other ranks of a run that is observed: keeps what they report of each subnet, before they do;
  /// null: nobody.
  PartSink* parts = nullptr;
  bool has_checkpoints = false;  ///< other ranks: that rank 0 takes them, every `checkpoints.every`
  /// That rank 0's layers are not the initial ones: it sends them to all.
  bool sends_layers = false;
  /// A run on ranks in which nothing happens for that long, though subnets are in flight, has
  /// failed. A stage that has not returned from its task by then is left alone.
  std::int64_t stall_timeout_ms = 30 * 60 * 1000;
  /// Set once a stage was left alone that never returned. Its thread is still there, and uses what
  /// it was given should it ever go on: all that is left to do is to close files and to end the
  /// process, by std::_Exit. Null: nobody asks.
  std::atomic<bool>* has_stuck_stage = nullptr;
};

struct TrainingOutcome {
  RunStatus status = RunStatus::kComplete;
  std::string detail;               ///< why it stopped early
  std::int64_t subnets = 0;         ///< finished, those below `first` too
  std::int64_t versions_moved = 0;  ///< layers handed from one stage to another
  /// Activations, gradients and layers that ranks sent each other while subnets were in flight.
  std::int64_t bytes_moved = 0;
  std::optional<CacheStatistics> layers;  ///< of this rank, in a run with `device_memory`
};

/// The least `device_memory` with which the subnets of a run under these options can be trained; no
/// number where there is no such layout.
Result<std::int64_t> LeastDeviceMemoryOf(const Experiment& experiment,
                                         const TrainingOptions& options);

/// Whether runs under this policy can be given a `device_memory`.
bool KeepsToDeviceMemory(const std::string& policy);

/// Whether the experiment can be trained under these options; kUsage where not.
Status CheckTraining(const Experiment& experiment, const TrainingOptions& options);

/// Trains the experiment's stream from `first` on. Usage errors are returned before anything runs.
/// A failure in the middle (an observer's error, LibTorch's, a loss that is not finite) is an
/// outcome with status kFailed: what finished before it has been reported to the observer. A run
/// that is whole, or stopped on request, leaves a checkpoint of its end.
Result<TrainingOutcome> Train(Experiment& experiment, const TrainingOptions& options);

}  // namespace verbatim
