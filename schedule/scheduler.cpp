#include "schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbatim {

Scheduler::Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
                     const SchedulerOptions& options)
    : Scheduler(space, partition, policy, options, {0, partition.stages()}) {}

Scheduler::Scheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
                     const SchedulerOptions& options, const StagePart& part)
    : space_(space),
      partition_(partition),
      policy_(policy),
      options_(options),
      part_(part),
      graph_(space),
      stages_(static_cast<std::size_t>(partition.stages())),
      layers_(space.layers().size()) {
  VERBATIM_CHECK(options.microbatches >= 1 && options.in_flight_max >= 1);
  VERBATIM_CHECK(0 <= part.begin && part.begin < part.end && part.end <= partition.stages());
}

bool Scheduler::CanAdmit() const {
  return in_flight() < options_.in_flight_max;
}

std::int64_t Scheduler::LowestUnfinished() const {
  return subnets_.empty() ? last_admitted_ + 1 : subnets_.begin()->first;
}

void Scheduler::Admit(std::int64_t seq, std::vector<std::uint16_t> choices,
                      std::vector<Delivery>& deliveries) {
  VERBATIM_CHECK(CanAdmit() && seq > last_admitted_, "seq {} after {}", seq, last_admitted_);
  last_admitted_ = seq;
  Subnet& subnet = subnets_[seq];
  subnet.choices = std::move(choices);
  subnet.ranges = partition_.Ranges(subnet.choices);
  subnet.parts.resize(stages_.size());
  subnet.parts_unfinished = part_.end - part_.begin;
  for (int stage = part_.begin; stage < part_.end; ++stage) {
    subnet.parts[stage].is_resident = !options_.gates_residency;
  }
  WaitForPredecessors(seq, subnet, deliveries);
  if (!part_.Contains(0)) return;
  for (std::int32_t m = 0; m < options_.microbatches; ++m) {
    Deliver({.task = Task{TaskKind::kForward, seq, m}});
  }
}

void Scheduler::WaitForPredecessors(std::int64_t seq, Subnet& subnet,
                                    std::vector<Delivery>& deliveries) {
  const std::span<const CausalPredecessors> predecessors = graph_.Add(seq, subnet.choices);
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
    Part& part = subnet.parts[stage];
    for (int position = subnet.ranges.Begin(stage); position < subnet.ranges.End(stage);
         ++position) {
      const auto [read, base] = predecessors[position];
      const Layer& layer = space_.LayerAt(position, subnet.choices);
      if (!layer.IsVersioned()) continue;
      Waiting access{read, -1, seq, TaskKind::kForward, stage, /*is_base=*/base == read};
      if (MustWait(access, layer.id, deliveries)) ++part.unread;
      access = {base, -1, seq, TaskKind::kUpdate, stage, /*is_base=*/true};
      if (base != read && MustWait(access, layer.id, deliveries)) ++part.unupdated;
      layers_[layer.id].users.push_back({seq, stage});
      DropOld(layer, seq + 1, layers_[layer.id].users);
    }
  }
}

void Scheduler::DropOld(const Layer& layer, std::int64_t next, std::vector<LayerUser>& uses) const {
  while (uses.size() > 1 && uses[1].seq < next - layer.delay) uses.erase(uses.begin());
}

std::optional<LayerUser> Scheduler::LastUse(int layer) const {
  const std::vector<LayerUser>& users = layers_[layer].users;
  return users.empty() ? std::nullopt : std::optional(users.back());
}

bool Scheduler::IsDone(const LayerUses& uses, std::int64_t predecessor) const {
  const bool is_newest = !uses.versions.empty() && predecessor <= uses.versions.back().seq;
  // A predecessor that is no longer in flight is finished on all stages of the part.
  return is_newest || !subnets_.contains(predecessor);
}

bool Scheduler::MustWait(Waiting waiting, int layer, std::vector<Delivery>& deliveries) {
  if (waiting.predecessor == CausalPredecessors::kNone) return false;
  LayerUses& uses = layers_[layer];
  const auto is_predecessor = [&](const LayerUser& use) { return use.seq == waiting.predecessor; };
  waiting.from = std::find_if(uses.users.begin(), uses.users.end(), is_predecessor)->stage;
  const bool is_written_here = part_.Contains(waiting.from);
  if (!is_written_here && !part_.Contains(waiting.stage)) return false;
  if (!is_written_here || !IsDone(uses, waiting.predecessor)) {
    uses.waiting.push_back(waiting);
    return true;
  }
  const auto version = std::find_if(uses.versions.begin(), uses.versions.end(), is_predecessor);
  if (version == uses.versions.end() || version->stage == waiting.stage) return false;
  deliveries.push_back(DeliveryFor(waiting, layer));
  return true;
}

Delivery Scheduler::DeliveryFor(const Waiting& waiting, int layer) {
  return {Delivery::Kind::kVersion,
          waiting.from,
          waiting.stage,
          Task{waiting.access, waiting.seq, 0},
          layer,
          waiting.predecessor,
          waiting.is_base};
}

StartView Scheduler::ViewOf(std::int64_t seq, int unfinished) const {
  return {unfinished, /*earlier_unfinished=*/LowestUnfinished() < seq};
}

void Scheduler::Deliver(const Delivery& delivery) {
  const Task& task = delivery.task;
  if (delivery.kind == Delivery::Kind::kVersion) {
    if (!part_.Contains(delivery.from)) {
      const std::size_t awaited = std::erase_if(
          layers_[delivery.layer].waiting,
          [&](const Waiting& waiting) { return DeliveryFor(waiting, delivery.layer) == delivery; });
      VERBATIM_CHECK(awaited == 1, "layer {} for subnet {}", delivery.layer, task.seq);
    }
    VersionArrived(delivery.to, task);
  } else if (task.kind == TaskKind::kBackward) {
    stages_[delivery.to].backward.insert(task);
  } else {
    if (MayStart(task.seq, delivery.to)) {
      stages_[delivery.to].forward.insert(task);
    } else {
      subnets_.at(task.seq).parts[delivery.to].blocked_forwards.push_back(task.microbatch);
    }
  }
}

bool Scheduler::MayStart(std::int64_t seq, int stage) {
  Part& part = subnets_.at(seq).parts[stage];
  if (!policy_.MayStart(ViewOf(seq, part.unread))) return false;
  if (options_.gates_residency && !part.is_wanted) {
    part.is_wanted = true;
    wanted_.push_back({seq, stage});
  }
  return part.is_resident;
}

void Scheduler::Resident(const Residency& part) {
  VERBATIM_CHECK(options_.gates_residency && part_.Contains(part.stage));
  subnets_.at(part.seq).parts[part.stage].is_resident = true;
  Unblock(part.seq, part.stage);
}

std::vector<Residency> Scheduler::TakeWanted() {
  return std::exchange(wanted_, {});
}

std::optional<Delivery> Scheduler::AwaitedVersion(const Task& access, int layer, int to) const {
  if (layer < 0 || layer >= std::ssize(layers_)) return std::nullopt;
  for (const Waiting& waiting : layers_[layer].waiting) {
    const Delivery delivery = DeliveryFor(waiting, layer);
    const bool is_foreign = !part_.Contains(delivery.from);
    if (is_foreign && delivery.task == access && delivery.to == to) return delivery;
  }
  return std::nullopt;
}

ReadyView Scheduler::View(int index) const {
  const Stage& stage = stages_[index];
  ReadyView view;
  if (!stage.forward.empty()) view.forward = *stage.forward.begin();
  if (!stage.backward.empty()) {
    view.backward = *stage.backward.begin();
    view.forwards_of_backward = subnets_.at(view.backward->seq).parts[index].forwards_begun;
  }
  if (!stage.update.empty()) view.update = *stage.update.begin();
  view.stage = index;
  view.stages = static_cast<int>(stages_.size());
  view.microbatches = options_.microbatches;
  view.held = stage.held;
  view.running = running_ - (stage.is_running ? 1 : 0);
  return view;
}

bool Scheduler::HasReady(int stage) const {
  const Stage& s = stages_[stage];
  if (s.forward.empty() && s.backward.empty() && s.update.empty()) return false;
  return policy_.Choose(View(stage)).has_value();
}

std::optional<Task> Scheduler::Next(int index) {
  Stage& stage = stages_[index];
  const std::optional<Task> task = policy_.Choose(View(index));
  if (!task) return std::nullopt;
  VERBATIM_CHECK(!stage.is_running, "stage {} has a task already", index);
  stage.is_running = true;
  ++running_;
  if (task->kind == TaskKind::kForward) {
    ++stage.held;
    ++subnets_.at(task->seq).parts[index].forwards_begun;
    VERBATIM_CHECK(stage.forward.erase(*task) == 1);
  } else if (task->kind == TaskKind::kBackward) {
    --stage.held;
    VERBATIM_CHECK(stage.backward.erase(*task) == 1);
  } else {
    VERBATIM_CHECK(stage.update.erase(*task) == 1);
  }
  return task;
}

bool Scheduler::Finished(int stage, const Task& task, std::vector<Delivery>& deliveries) {
  stages_[stage].is_running = false;
  --running_;
  const int last_stage = static_cast<int>(stages_.size()) - 1;
  switch (task.kind) {
    case TaskKind::kForward: {
      const bool turns = stage == last_stage;
      deliveries.push_back(
          {.from = stage,
           .to = turns ? stage : stage + 1,
           .task = {turns ? TaskKind::kBackward : TaskKind::kForward, task.seq, task.microbatch}});
      return false;
    }
    case TaskKind::kBackward:
      BackwardFinished(stage, task, deliveries);
      return false;
    case TaskKind::kUpdate:
      ReleaseLayers(task.seq, stage, deliveries);
      return FinishPart(task.seq);
  }
  VERBATIM_CHECK(false, "task {}", static_cast<int>(task.kind));
}

void Scheduler::BackwardFinished(int stage, const Task& task, std::vector<Delivery>& deliveries) {
  if (stage > 0) deliveries.push_back({.from = stage, .to = stage - 1, .task = task});
  if (task.microbatch < options_.microbatches - 1) return;
  subnets_.at(task.seq).parts[stage].update_blocked = true;
  Unblock(task.seq, stage);
}

void Scheduler::ReleaseLayers(std::int64_t seq, int stage, std::vector<Delivery>& deliveries) {
  const Subnet& subnet = subnets_.at(seq);
  for (int position = subnet.ranges.Begin(stage); position < subnet.ranges.End(stage); ++position) {
    const Layer& layer = space_.LayerAt(position, subnet.choices);
    if (layer.IsVersioned()) Release({seq, stage}, layer, deliveries);
  }
}

void Scheduler::Release(const LayerUser& version, const Layer& layer,
                        std::vector<Delivery>& deliveries) {
  LayerUses& uses = layers_[layer.id];
  // A policy that ignores causality may finish accesses out of order.
  if (uses.versions.empty() || uses.versions.back().seq < version.seq) {
    uses.versions.push_back(version);
  }
  DropOld(layer, last_admitted_ + 1, uses.versions);
  std::erase_if(uses.waiting, [&](const Waiting& waiting) {
    if (waiting.predecessor != version.seq) return false;
    if (waiting.stage == version.stage) {
      VersionArrived(waiting.stage, {waiting.access, waiting.seq, 0});
    } else if (!part_.Contains(waiting.stage) || subnets_.contains(waiting.seq)) {
      deliveries.push_back(DeliveryFor(waiting, layer.id));
    }  // else it did not wait, and is finished already
    return true;
  });
}

void Scheduler::VersionArrived(int stage, const Task& access) {
  const auto subnet = subnets_.find(access.seq);
  if (subnet == subnets_.end()) return;  // it did not wait, and is finished already
  Part& part = subnet->second.parts[stage];
  --(access.kind == TaskKind::kForward ? part.unread : part.unupdated);
  Unblock(access.seq, stage);
}

void Scheduler::Unblock(std::int64_t seq, int stage) {
  Part& part = subnets_.at(seq).parts[stage];
  if (!part.blocked_forwards.empty() && MayStart(seq, stage)) {
    for (const std::int32_t m : part.blocked_forwards) {
      stages_[stage].forward.insert({TaskKind::kForward, seq, m});
    }
    part.blocked_forwards.clear();
  }
  if (part.update_blocked && policy_.MayUpdate(ViewOf(seq, part.unupdated))) {
    stages_[stage].update.insert({TaskKind::kUpdate, seq, options_.microbatches - 1});
    part.update_blocked = false;
  }
}

bool Scheduler::FinishPart(std::int64_t seq) {
  if (--subnets_.at(seq).parts_unfinished > 0) return false;
  subnets_.erase(seq);
  // Only the lowest unfinished subnet gains a right to start from another's end.
  const std::int64_t lowest = LowestUnfinished();
  if (!subnets_.contains(lowest)) return true;
  for (int stage = part_.begin; stage < part_.end; ++stage) Unblock(lowest, stage);
  return true;
}

}  // namespace verbatim
