// What a simulation is asked, and what it reports. Times are in the cost table's unit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/layer_cache.h"
#include "schedule/recompute.h"
#include "schedule/task.h"

namespace verbatim {

/// Stages that hold a part of their layers (schedule/layer_cache.h).
struct DeviceMemoryOptions {
  std::int64_t budget_bytes = 0;  ///< by stage; at least LeastDeviceMemory of the stream
  double time_per_byte = 0.0;  ///< between home and a stage; in each direction one layer at a time
  CachePolicy policy = CachePolicy::kLookAhead;
  std::int64_t window = 64;  ///< subnets that the cache knows beyond those admitted
};

struct SimulationOptions {
  std::int64_t subnets = 0;  ///< 0 … subnets-1 of the stream
  std::int32_t microbatches = 1;
  double last_microbatch = 1.0;    ///< rows of the last micro-batch per row of the others
  std::int64_t in_flight_max = 4;  ///< subnets admitted and not finished
  /// What a transfer between two stages takes: latency, and time on the link per byte. A link
  /// carries one transfer at a time, in the order in which they set out.
  double latency = 0.0;
  double time_per_byte = 0.0;
  /// Without it, every stage has room for whatever it needs. Only with policies of the causal
  /// family.
  std::optional<DeviceMemoryOptions> device_memory;
  /// Subnets whose tasks are kept: [timeline_begin, timeline_end).
  std::int64_t timeline_begin = 0;
  std::int64_t timeline_end = 0;
  RecomputePlan recompute = {};
};

struct StageUse {
  double forward = 0.0;  ///< time spent
  double backward = 0.0;
  double update = 0.0;
  double recompute = 0.0;             ///< of the backward: forwards computed again
  std::int64_t held_max = 0;          ///< micro-batches: forward begun, backward not done
  std::int64_t activation_bytes = 0;  ///< of those, at most
  /// What `activation_bytes` would be in the same schedule if nothing were computed again.
  std::int64_t whole_activation_bytes = 0;
  /// At most: the newest version of each layer that lives here with its optimizer state, and older
  /// versions that a delay or a subnet under way (PipeDream's stash) still needs. With a bounded
  /// device memory, what is there of layers.
  std::int64_t weight_bytes = 0;

  double busy() const { return forward + backward + update; }
  bool operator==(const StageUse&) const = default;
};

struct SimulatedTask {
  Task task;
  int stage = 0;
  double begin = 0.0;
  double end = 0.0;
  bool operator==(const SimulatedTask&) const = default;
};

/// A subnet's use of a versioned layer as the simulation observed it; kept with the timeline.
struct SimulatedAccess {
  std::int64_t seq = 0;
  int layer = 0;
  int stage = 0;
  std::int64_t read = -1;  ///< seq that wrote the version read
  std::int64_t base = -1;  ///< likewise the version updated
  bool operator==(const SimulatedAccess&) const = default;
};

/// Moved from one stage to another.
struct MovedBytes {
  std::int64_t activations = 0;
  std::int64_t gradients = 0;
  std::int64_t versions = 0;
  bool operator==(const MovedBytes&) const = default;
};

/// With DeviceMemoryOptions, up to the end of the last subnet.
struct DeviceMemoryUse {
  CacheStatistics cache;
  /// By stage: time that it was idle while a subnet waited there for nothing but its layers; and of
  /// that, while the first of those had no room either, since earlier subnets had all of it.
  std::vector<double> stall;
  std::vector<double> stall_for_room;
  bool operator==(const DeviceMemoryUse&) const = default;

  /// On average over the stages.
  double MeanStall() const;
  double MeanStallForRoom() const;
};

struct SimulationReport {
  std::int64_t subnets = 0;
  double makespan = 0.0;
  double work = 0.0;           ///< of all tasks, one after another, each forward once
  double recompute = 0.0;      ///< what is computed again, likewise
  double critical_path = 0.0;  ///< of the causal graph (causal_bound.h)
  std::vector<StageUse> stages;
  MovedBytes moved;
  std::int64_t accesses = 0;
  /// Accesses that read or updated another version than their causal predecessor's.
  std::int64_t violations = 0;
  /// The least device memory of the stream, and a part's on average (LeastDeviceMemory).
  std::int64_t device_memory_least = 0;
  double part_bytes = 0.0;
  std::optional<DeviceMemoryUse> device_memory;
  std::vector<SimulatedTask> timeline;  ///< by begin
  std::vector<SimulatedAccess> timeline_accesses;
  bool operator==(const SimulationReport&) const = default;

  /// Over one stage that computes nothing again.
  double speedup() const { return makespan > 0 ? work / makespan : 1.0; }
  /// No causal schedule on this many stages takes less.
  double bound() const;
  /// The speed-up of a schedule that takes no longer than bound().
  double speedup_max() const;
  /// Share of its time that stages are idle, on average.
  double bubble() const;
  double ShareOf(double time) const { return makespan > 0 ? time / makespan : 0.0; }
  /// Share of the time that one stage is busy.
  double BusyShare(const StageUse& stage) const { return ShareOf(stage.busy()); }
};

}  // namespace verbatim
