#include "schedule/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace verbatim {

Scheduler::Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
                     const SchedulerOptions& options)
    : space_(space),
      partition_(partition),
      policy_(policy),
      options_(options),
      graph_(space),
      stages_(static_cast<std::size_t>(partition.stages())),
      layers_(space.layers().size()) {
  VERBATIM_CHECK(options.microbatches >= 1 && options.in_flight_max >= 1);
}

bool Scheduler::CanAdmit() const {
  return in_flight() < options_.in_flight_max;
}

std::int64_t Scheduler::LowestUnfinished() const {
  return subnets_.empty() ? last_admitted_ + 1 : subnets_.begin()->first;
}

void Scheduler::Admit(std::int64_t seq, std::vector<std::uint16_t> choices) {
  VERBATIM_CHECK(CanAdmit() && seq > last_admitted_, "seq {} after {}", seq, last_admitted_);
  last_admitted_ = seq;
  Subnet& subnet = subnets_[seq];
  subnet.choices = std::move(choices);
  subnet.unfinished_predecessors.resize(stages_.size(), 0);
  WaitForPredecessors(seq, subnet);
  for (std::int32_t m = 0; m < options_.microbatches; ++m) {
    Deliver({0, Task{TaskKind::kForward, seq, m}});
  }
}

void Scheduler::WaitForPredecessors(std::int64_t seq, Subnet& subnet) {
  const std::span<const std::int64_t> predecessors = graph_.Add(seq, subnet.choices);
  const StageRanges& ranges = partition_.Ranges(subnet.choices);
  for (int position = 0; position < space_.positions(); ++position) {
    LayerUse& use = layers_[space_.LayerAt(position, subnet.choices).id];
    if (IsFinishedOn(use, predecessors[position])) continue;
    use.waiting.emplace_back(predecessors[position], seq);
    ++subnet.unfinished_predecessors[ranges.StageOf(position)];
  }
}

bool Scheduler::IsFinishedOn(const LayerUse& use, std::int64_t predecessor) const {
  // A predecessor that is no longer in flight is finished everywhere.
  return predecessor == CausalGraph::kNone || predecessor == use.last_user_done ||
         !subnets_.contains(predecessor);
}

bool Scheduler::MayStart(std::int64_t seq, int stage) const {
  return policy_.MayStart(StartView{subnets_.at(seq).unfinished_predecessors[stage],
                                    /*earlier_unfinished=*/LowestUnfinished() < seq});
}

void Scheduler::Deliver(const Delivery& delivery) {
  Stage& stage = stages_[delivery.stage];
  if (delivery.task.kind == TaskKind::kBackward) {
    stage.backward.insert(delivery.task);
  } else if (MayStart(delivery.task.seq, delivery.stage)) {
    stage.forward.insert(delivery.task);
  } else {
    stage.blocked[delivery.task.seq].push_back(delivery.task);
  }
}

bool Scheduler::HasReady(int stage) const {
  return !stages_[stage].forward.empty() || !stages_[stage].backward.empty();
}

std::optional<Task> Scheduler::Next(int stage_index) {
  Stage& stage = stages_[stage_index];
  ReadyView view;
  if (!stage.forward.empty()) view.forward = *stage.forward.begin();
  if (!stage.backward.empty()) view.backward = *stage.backward.begin();
  const std::optional<Task> task = policy_.Choose(view);
  if (!task) return std::nullopt;
  auto& ready = task->kind == TaskKind::kForward ? stage.forward : stage.backward;
  VERBATIM_CHECK(ready.erase(*task) == 1);
  return task;
}

std::optional<Delivery> Scheduler::Finished(int stage, const Task& task) {
  const int last_stage = static_cast<int>(stages_.size()) - 1;
  if (task.kind == TaskKind::kForward) {
    if (stage < last_stage) return Delivery{stage + 1, task};
    return Delivery{stage, Task{TaskKind::kBackward, task.seq, task.microbatch}};
  }
  if (task.microbatch == options_.microbatches - 1) {
    ReleaseLayers(task.seq, stage);
    if (stage == 0) FinishSubnet(task.seq);
  }
  if (stage == 0) return std::nullopt;
  return Delivery{stage - 1, task};
}

void Scheduler::ReleaseLayers(std::int64_t seq, int stage) {
  const Subnet& subnet = subnets_.at(seq);
  const StageRanges& ranges = partition_.Ranges(subnet.choices);
  for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
    LayerUse& use = layers_[space_.LayerAt(position, subnet.choices).id];
    use.last_user_done = std::max(use.last_user_done, seq);
    // Usually the front; a policy that ignores causality may finish accesses out of order.
    for (auto it = use.waiting.begin(); it != use.waiting.end();) {
      if (it->first != seq) {
        ++it;
        continue;
      }
      StartSuccessor(it->second, position);
      it = use.waiting.erase(it);
    }
  }
}

void Scheduler::StartSuccessor(std::int64_t seq, int position) {
  const auto successor = subnets_.find(seq);
  if (successor == subnets_.end()) return;  // it did not wait, and is finished already
  const int stage = partition_.Ranges(successor->second.choices).StageOf(position);
  --successor->second.unfinished_predecessors[stage];
  Unblock(seq, stage);
}

void Scheduler::Unblock(std::int64_t seq, int stage_index) {
  Stage& stage = stages_[stage_index];
  const auto blocked = stage.blocked.find(seq);
  if (blocked == stage.blocked.end() || !MayStart(seq, stage_index)) return;
  stage.forward.insert(blocked->second.begin(), blocked->second.end());
  stage.blocked.erase(blocked);
}

void Scheduler::FinishSubnet(std::int64_t seq) {
  subnets_.erase(seq);
  // Only the lowest unfinished subnet gains a right to start from another's end.
  const std::int64_t lowest = LowestUnfinished();
  if (!subnets_.contains(lowest)) return;
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) Unblock(lowest, stage);
}

}  // namespace verbatim
