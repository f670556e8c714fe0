#include "schedule/rank_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbatim {

RankScheduler::RankScheduler(const SearchSpace& space, const Partition& partition,
                             const Policy& policy, const SchedulerOptions& options,
                             const Placement& placement, int rank)
    : placement_(placement),
      rank_(rank),
      options_(options),
      scheduler_(space, partition, policy, options, {placement.Begin(rank), placement.End(rank)}) {
  VERBATIM_CHECK(placement.stages() == partition.stages());
}

std::int64_t RankScheduler::in_flight() const {
  return rank_ == 0 ? std::ssize(unfinished_) : scheduler_.in_flight();
}

bool RankScheduler::CanAdmit() const {
  return in_flight() < options_.in_flight_max;
}

bool RankScheduler::Admit(std::int64_t seq, std::vector<std::uint16_t> choices,
                          std::vector<RankMessage>& messages) {
  const bool is_its_turn = CanAdmit() && seq > last_admitted_;
  VERBATIM_CHECK(is_its_turn || rank_ != 0, "seq {} after {}", seq, last_admitted_);
  if (!is_its_turn || (!early_.empty() && early_.begin()->first < seq)) return false;
  last_admitted_ = seq;
  arrived_[seq];
  if (rank_ == 0) {
    for (int rank = 0; rank < placement_.ranks(); ++rank) {
      unfinished_[seq].insert(rank);
      if (rank != 0) messages.push_back({RankMessage::Kind::kAdmitted, rank, seq, {}});
    }
  }
  scheduler_.Admit(seq, std::move(choices), deliveries_);
  Route(messages);
  const auto early = early_.extract(seq);
  return early.empty() ||
         std::all_of(early.mapped().begin(), early.mapped().end(),
                     [this](const auto& sent) { return DeliverAdmitted(sent.first, sent.second); });
}

std::optional<Task> RankScheduler::Next(int stage) {
  VERBATIM_CHECK(IsLocal(stage), "stage {} on rank {}", stage, rank_);
  return scheduler_.Next(stage);
}

bool RankScheduler::HasReady(int stage) const {
  VERBATIM_CHECK(IsLocal(stage), "stage {} on rank {}", stage, rank_);
  return scheduler_.HasReady(stage);
}

bool RankScheduler::Finished(int stage, const Task& task, std::vector<RankMessage>& messages) {
  const bool is_done_here = scheduler_.Finished(stage, task, deliveries_);
  Route(messages);
  if (!is_done_here) return false;
  arrived_.erase(task.seq);
  if (rank_ != 0) {
    messages.push_back({RankMessage::Kind::kFinished, 0, task.seq, {}});
    return true;
  }
  return MarkFinished(task.seq, 0);
}

void RankScheduler::Route(std::vector<RankMessage>& messages) {
  for (const Delivery& delivery : deliveries_) {
    if (delivery.kind == Delivery::Kind::kVersion) ++versions_moved_;
    if (IsLocal(delivery.to)) {
      scheduler_.Deliver(delivery);
    } else {
      messages.push_back({RankMessage::Kind::kDelivery, placement_.RankOf(delivery.to),
                          delivery.task.seq, delivery});
    }
  }
  deliveries_.clear();
}

bool RankScheduler::Deliver(const Delivery& delivery, int from) {
  const std::int64_t seq = delivery.task.seq;
  if (seq <= last_admitted_) return DeliverAdmitted(delivery, from);
  // Rank 0 has admitted it, so this rank will; and no more than may be in flight.
  if (rank_ == 0 || (std::ssize(early_) >= options_.in_flight_max && !early_.contains(seq))) {
    return false;
  }
  early_[seq].emplace_back(delivery, from);
  return true;
}

bool RankScheduler::DeliverAdmitted(const Delivery& delivery, int from) {
  const int to = delivery.to;
  if (to < 0 || to >= placement_.stages() || !IsLocal(to)) return false;
  if (!scheduler_.IsInFlight(delivery.task.seq)) return false;
  const bool is_version = delivery.kind == Delivery::Kind::kVersion;
  return is_version ? DeliverVersion(delivery, from) : DeliverTask(delivery, from);
}

bool RankScheduler::DeliverTask(const Delivery& delivery, int from) {
  const Task& task = delivery.task;
  if (task.kind != TaskKind::kForward && task.kind != TaskKind::kBackward) return false;
  const bool is_forward = task.kind == TaskKind::kForward;
  const int sender = delivery.to + (is_forward ? -1 : 1);
  if (sender < 0 || sender >= placement_.stages()) return false;
  if (IsLocal(sender) || placement_.RankOf(sender) != from) return false;
  Arrived& arrived = arrived_.at(task.seq);
  std::int32_t& next = is_forward ? arrived.forwards : arrived.backwards;
  if (task.microbatch != next || next >= options_.microbatches) return false;
  ++next;
  scheduler_.Deliver(delivery);
  return true;
}

bool RankScheduler::DeliverVersion(const Delivery& delivery, int from) {
  const std::optional<Delivery> awaited =
      scheduler_.AwaitedVersion(delivery.task, delivery.layer, delivery.to);
  if (!awaited || awaited->version != delivery.version) return false;
  if (placement_.RankOf(awaited->from) != from) return false;
  scheduler_.Deliver(*awaited);
  return true;
}

bool RankScheduler::PartFinished(std::int64_t seq, int from, bool& is_finished) {
  VERBATIM_CHECK(rank_ == 0);
  const auto unfinished = unfinished_.find(seq);
  if (unfinished == unfinished_.end() || from == 0 || !unfinished->second.contains(from)) {
    return false;
  }
  is_finished = MarkFinished(seq, from);
  return true;
}

bool RankScheduler::MarkFinished(std::int64_t seq, int rank) {
  std::set<int>& ranks = unfinished_.at(seq);
  ranks.erase(rank);
  if (!ranks.empty()) return false;
  unfinished_.erase(seq);
  return true;
}

int RankScheduler::HolderOf(int layer) const {
  const std::optional<LayerUser> last = scheduler_.LastUse(layer);
  return last ? placement_.RankOf(last->stage) : -1;
}

std::int64_t RankScheduler::LastUserOf(int layer) const {
  const std::optional<LayerUser> last = scheduler_.LastUse(layer);
  return last ? last->seq : -1;
}

}  // namespace verbatim
