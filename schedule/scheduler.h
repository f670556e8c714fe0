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
  /// A part of a subnet may start on a stage only once Resident has said that its layers are there
  /// (schedule/layer_cache.h).
  bool gates_residency = false;
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
  /// kVersion: whether the subnet updates this version, so that all of the layer's state travels;
  /// else it reads the parameters, and another version is the one that it updates.
  bool is_base = false;
  bool operator==(const Delivery&) const = default;
};

/// A subnet that uses a layer, and the stage on which it does.
struct LayerUser {
  std::int64_t seq;
  int stage;
};

/// Not thread-safe: the caller locks. References must outlive it.
///
/// A subnet's access on a stage waits for its predecessors' updates, and, where they ran on another
/// stage, for the version to arrive: versions travel along causal edges, and nothing else does.
/// Initial weights (version -1) are on every stage.
///
/// It cannot deadlock under `causal`: admission is in seq order, so the lowest unfinished subnet is
/// always admitted, and all its predecessors are finished.
///
/// A scheduler may serve a part of the stages, others the rest (schedule/rank_scheduler.h): each
/// admits every subnet, so that all know who uses which layer where, and each hears of tasks on its
/// own stages alone. Of what is written elsewhere it knows what arrives; a subnet is in flight, or
/// finished, as far as its own stages go. Only `causal` decides by nothing else.
class Scheduler {
 public:
  Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
            const SchedulerOptions& options);
  Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
            const SchedulerOptions& options, const StagePart& part);

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
  /// To one of these stages.
  void Deliver(const Delivery& delivery);
  /// With gates_residency: the part's layers are on its stage. Once per part; it may come before
  /// whatever else the part waits for.
  void Resident(const Residency& part);
  /// With gates_residency: parts that since the last call came to wait for nothing but Resident, or
  /// not even for that. Each part once.
  std::vector<Residency> TakeWanted();
  /// What an access in flight on stage `to` waits for from a stage that is not among these, if it
  /// does.
  std::optional<Delivery> AwaitedVersion(const Task& access, int layer, int to) const;

  std::int64_t in_flight() const { return static_cast<std::int64_t>(subnets_.size()); }
  /// Every subnet below it is finished.
  std::int64_t LowestUnfinished() const;
  /// The ranges of a subnet in flight.
  const StageRanges& RangesOf(std::int64_t seq) const { return subnets_.at(seq).ranges; }
  bool IsInFlight(std::int64_t seq) const { return subnets_.contains(seq); }
  /// Of the admitted subnets, the last to use the layer; nothing where none does, or where the
  /// layer has no versions.
  std::optional<LayerUser> LastUse(int layer) const;

 private:
  /// A subnet's part on one stage.
  struct Part {
    int unread = 0;     ///< predecessors whose versions it reads, not yet updated or not yet here
    int unupdated = 0;  ///< likewise those whose versions it updates, where those differ
    std::int32_t forwards_begun = 0;
    std::vector<std::int32_t> blocked_forwards;  ///< micro-batches that arrived and may not start
    bool update_blocked = false;                 ///< its update may not start yet
    bool is_resident = true;                     ///< or need not be
    bool is_wanted = false;                      ///< it waits, or waited, for that alone
  };
  struct Subnet {
    std::vector<std::uint16_t> choices;
    StageRanges ranges;
    std::vector<Part> parts;  ///< by stage, all of them
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
    int from;  ///< the stage that writes it
    std::int64_t seq;
    TaskKind access;  ///< kForward: reads it, kUpdate: updates it
    int stage;        ///< where
    bool is_base;     ///< see Delivery
  };
  struct LayerUses {
    std::vector<LayerUser> users;     ///< admitted; ascending, those that a later one may ask for
    std::vector<LayerUser> versions;  ///< of those, the ones that these stages have written
    std::vector<Waiting> waiting;     ///< for these stages, or on these stages for others
  };

  ReadyView View(int stage) const;
  StartView ViewOf(std::int64_t seq, int unfinished) const;
  /// Whether a forward that has arrived may start.
  bool MayStart(std::int64_t seq, int stage);
  bool IsDone(const LayerUses& uses, std::int64_t predecessor) const;
  /// Whether the access has to wait: for its predecessor's update, or for the version to arrive.
  bool MustWait(Waiting waiting, int layer, std::vector<Delivery>& deliveries);
  /// Drops uses whose versions no subnet from `next` on may ask for.
  void DropOld(const Layer& layer, std::int64_t next, std::vector<LayerUser>& uses) const;
  void WaitForPredecessors(std::int64_t seq, Subnet& subnet, std::vector<Delivery>& deliveries);
  void BackwardFinished(int stage, const Task& task, std::vector<Delivery>& deliveries);
  void ReleaseLayers(std::int64_t seq, int stage, std::vector<Delivery>& deliveries);
  void Release(const LayerUser& version, const Layer& layer, std::vector<Delivery>& deliveries);
  static Delivery DeliveryFor(const Waiting& waiting, int layer);
  void VersionArrived(int stage, const Task& access);
  void Unblock(std::int64_t seq, int stage);
  bool FinishPart(std::int64_t seq);

  const SearchSpace& space_;
  const Partition& partition_;
  const Policy& policy_;
  SchedulerOptions options_;
  StagePart part_;
  CausalGraph graph_;
  std::map<std::int64_t, Subnet> subnets_;  ///< admitted and unfinished
  std::vector<Stage> stages_;               ///< all of them; those of the part are used
  std::vector<LayerUses> layers_;
  std::vector<Residency> wanted_;  ///< for TakeWanted
  int running_ = 0;
  std::int64_t last_admitted_ = -1;
};

}  // namespace verbatim
