// The scheduler: one run's state between tasks, without threads, clocks or tensors.
//
// A caller (the trainer's stage threads, or a simulator under a virtual clock) repeats:
// Admit subnets in seq order while CanAdmit; take Next(stage) for a free stage; execute it; report
// Finished. Both hand out deliveries, to be given to Deliver once what they carry has arrived. A
// decision costs O(log tasks of one stage + layers of one stage).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "schedule/causal_graph.h"
#include "schedule/partition.h"
#include "schedule/policy.h"
#include "schedule/task.h"
#include "supernet/search_space.h"

namespace verbatim {

struct SchedulerOptions {
  std::int32_t microbatches = 1;
  std::int64_t in_flight_max = 4;  ///< subnets admitted and not finished
};

/// Something that travels from one stage to another, or to the same.
struct Delivery {
  enum class Kind {
    kTask,     ///< `task` becomes ready on `to`: its activation, its gradient, or nothing but leave
    kVersion,  ///< a layer's version, for subnet `task.seq`, whose use of it is on stage `to`
  };
  Kind kind = Kind::kTask;
  int from = 0;
  int to = 0;
  Task task;       ///< kVersion: kForward where the subnet reads it, kUpdate where it updates it
  int layer = -1;  ///< kVersion
  std::int64_t version = -1;  ///< kVersion: seq of the subnet that wrote it
};

/// Not thread-safe: the caller locks. References must outlive it.
///
/// A subnet's access on a stage waits for its predecessors' updates, and, where they ran on another
/// stage, for the version to arrive: versions travel along causal edges, and nothing else does.
/// Initial weights (version -1) are on every stage.
///
/// It cannot deadlock under `causal`: admission is in seq order, so the lowest unfinished subnet is
/// always admitted, and all its predecessors are finished.
class Scheduler {
 public:
  Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
            const SchedulerOptions& options);

  bool CanAdmit() const;
  /// Admits a subnet of a higher seq than all before; all its micro-batches are ready on stage 0 as
  /// far as the policy lets them start. Appends versions that set out now. Subnets that are left
  /// out take no part: leave out only what none of the others depends on (schedule/causal_cone.h).
  void Admit(std::int64_t seq, std::vector<std::uint16_t> choices,
             std::vector<Delivery>& deliveries);

  /// Takes the task that a free stage runs now, if there is one.
  std::optional<Task> Next(int stage);
  /// Whether Next would give one.
  bool HasReady(int stage) const;

  /// A stage has executed a task taken from Next. Appends what sets out now. True: that was the
  /// subnet's last task, and it is no longer in flight.
  bool Finished(int stage, const Task& task, std::vector<Delivery>& deliveries);
  void Deliver(const Delivery& delivery);

  std::int64_t in_flight() const { return static_cast<std::int64_t>(subnets_.size()); }
  /// Every subnet below it is finished.
  std::int64_t LowestUnfinished() const;
  /// The ranges of a subnet in flight.
  const StageRanges& RangesOf(std::int64_t seq) const { return subnets_.at(seq).ranges; }

 private:
  /// A subnet's part on one stage.
  struct Part {
    int unread = 0;     ///< predecessors whose versions it reads, not yet updated or not yet here
    int unupdated = 0;  ///< likewise those whose versions it updates, where those differ
    std::int32_t forwards_begun = 0;
    std::vector<std::int32_t> blocked_forwards;  ///< micro-batches that arrived and may not start
    bool update_blocked = false;                 ///< its update may not start yet
  };
  struct Subnet {
    std::vector<std::uint16_t> choices;
    StageRanges ranges;
    std::vector<Part> parts;  ///< by stage
    int parts_unfinished = 0;
  };
  struct Stage {
    std::set<Task, TaskOrder> forward;   ///< ready
    std::set<Task, TaskOrder> backward;  ///< ready
    std::set<Task, TaskOrder> update;    ///< ready
    std::int64_t held = 0;
    bool is_running = false;
  };
  /// A subnet that waits for a version.
  struct Waiting {
    std::int64_t predecessor;
    std::int64_t seq;
    TaskKind access;  ///< kForward: reads it, kUpdate: updates it
  };
  struct Version {
    std::int64_t seq;
    int stage;  ///< where it was written
  };
  struct LayerUse {
    std::vector<Version> versions;  ///< ascending; those that a later subnet may ask for
    std::vector<Waiting> waiting;
  };

  ReadyView View(int stage) const;
  StartView ViewOf(std::int64_t seq, int unfinished) const;
  bool IsDone(const LayerUse& use, std::int64_t predecessor) const;
  /// Whether the access has to wait: for its predecessor's update, or for the version to arrive.
  bool MustWait(const Waiting& waiting, int layer, int stage, std::vector<Delivery>& deliveries);
  void WaitForPredecessors(std::int64_t seq, Subnet& subnet, std::vector<Delivery>& deliveries);
  void BackwardFinished(int stage, const Task& task, std::vector<Delivery>& deliveries);
  void ReleaseLayers(std::int64_t seq, int stage, std::vector<Delivery>& deliveries);
  void Release(const Version& version, int position, int layer, std::vector<Delivery>& deliveries);
  void VersionArrived(int stage, const Task& access);
  void Unblock(std::int64_t seq, int stage);
  bool FinishPart(std::int64_t seq);

  const SearchSpace& space_;
  const Partition& partition_;
  const Policy& policy_;
  SchedulerOptions options_;
  CausalGraph graph_;
  std::map<std::int64_t, Subnet> subnets_;  ///< admitted and unfinished
  std::vector<Stage> stages_;
  std::vector<LayerUse> layers_;
  int running_ = 0;
  std::int64_t last_admitted_ = -1;
};

}  // namespace verbatim
