// The scheduler: one run's state between tasks, without threads, clocks or tensors.
//
// A caller (the trainer's stage threads, or a simulator under a virtual clock) repeats:
// Admit subnets in seq order while CanAdmit; take Next(stage) for a free stage; execute it; report
// Finished, which may return a delivery for a neighbouring stage; Deliver it once its tensor is
// there. A decision costs O(log tasks of one stage + layers of one stage).
#pragma once

#include <cstdint>
#include <deque>
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

/// A task that becomes ready on `stage` when the tensor it needs has arrived there.
struct Delivery {
  int stage = 0;
  Task task;
};

/// Not thread-safe: the caller locks. References must outlive it.
///
/// It cannot deadlock under `causal`: admission is in seq order, so the lowest unfinished subnet is
/// always admitted, and all its predecessors are finished.
class Scheduler {
 public:
  Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
            const SchedulerOptions& options);

  bool CanAdmit() const;
  /// Admits a subnet of a higher seq than all before; all its micro-batches are ready on stage 0 as
  /// far as the policy lets them start. Subnets that are left out take no part: leave out only what
  /// none of the others depends on (schedule/causal_cone.h).
  void Admit(std::int64_t seq, std::vector<std::uint16_t> choices);

  /// Takes the task that a free stage runs now, if there is one.
  std::optional<Task> Next(int stage);
  bool HasReady(int stage) const;

  /// A stage has executed a task taken from Next. The delivery, if any, goes to a neighbour (or to
  /// the same stage: the last one turns a forward into a backward).
  std::optional<Delivery> Finished(int stage, const Task& task);
  void Deliver(const Delivery& delivery);

  std::int64_t in_flight() const { return static_cast<std::int64_t>(subnets_.size()); }
  /// Every subnet below it is finished.
  std::int64_t LowestUnfinished() const;

 private:
  struct Subnet {
    std::vector<std::uint16_t> choices;
    std::vector<int> unfinished_predecessors;  ///< by stage
  };
  struct Stage {
    std::set<Task, TaskOrder> forward;                  ///< ready
    std::set<Task, TaskOrder> backward;                 ///< ready
    std::map<std::int64_t, std::vector<Task>> blocked;  ///< arrived forwards that may not start
  };
  struct LayerUse {
    std::int64_t last_user_done = CausalGraph::kNone;
    std::deque<std::pair<std::int64_t, std::int64_t>> waiting;  ///< (predecessor, successor)
  };

  bool IsFinishedOn(const LayerUse& use, std::int64_t predecessor) const;
  void WaitForPredecessors(std::int64_t seq, Subnet& subnet);
  bool MayStart(std::int64_t seq, int stage) const;
  void ReleaseLayers(std::int64_t seq, int stage);
  void StartSuccessor(std::int64_t seq, int position);
  void Unblock(std::int64_t seq, int stage);
  void FinishSubnet(std::int64_t seq);

  const SearchSpace& space_;
  const Partition& partition_;
  const Policy& policy_;
  SchedulerOptions options_;
  CausalGraph graph_;
  std::map<std::int64_t, Subnet> subnets_;  ///< admitted and unfinished
  std::vector<Stage> stages_;
  std::vector<LayerUse> layers_;
  std::int64_t last_admitted_ = -1;
};

}  // namespace verbatim
