// One rank's part of a run, between tasks: what its stages run next, and what it tells the other
// ranks. Without threads, clocks, tensors or sockets, so that the trainer drives it over a network
// and a test over seeded delays and losses.
//
// Every rank knows the stream and each subnet's partition, so only events travel. Rank 0 hosts
// stage 0, decides when a subnet is admitted, and learns when it is finished everywhere. Everything
// else goes straight from the rank that has it to the rank that needs it. Nothing is broadcast but
// the admission of a subnet, one small message.
//
// What has to hold of the network: messages from one rank to another arrive once, and in the order
// in which they were sent. Nothing is asked of messages of different pairs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "schedule/placement.h"
#include "schedule/scheduler.h"

namespace verbatim {

/// What one rank tells another.
struct RankMessage {
  enum class Kind : std::uint8_t {
    kAdmitted,  ///< from rank 0: subnet `seq` is in flight
    kDelivery,  ///< `delivery` set out; the caller sends with it what it carries
    kFinished,  ///< to rank 0: the sender's stages have done all of subnet `seq`
  };
  Kind kind = Kind::kAdmitted;
  int to = 0;  ///< rank
  std::int64_t seq = -1;
  Delivery delivery;  ///< kDelivery
};

/// Not thread-safe: the caller locks. References must outlive it. On several ranks `policy` is
/// "causal": the others ask what no single rank knows.
///
/// A message that arrives is handed to the call that its kind names: kAdmitted to Admit, kDelivery
/// to Deliver (once what it carries is in place), kFinished to PartFinished. A delivery may arrive
/// before the admission of its subnet, when it comes from another rank than 0: it waits here.
/// Memory is that of the subnets in flight, and one number per layer and use within its delay.
///
/// What no rank of this run would send is refused: the call returns false, and the caller treats
/// the sender as lost.
class RankScheduler {
 public:
  RankScheduler(const SearchSpace& space, const Partition& partition, const Policy& policy,
                const SchedulerOptions& options, const Placement& placement, int rank);

  /// Rank 0: whether a further subnet may be admitted.
  bool CanAdmit() const;
  /// Rank 0 decides it, the others repeat it in the same order (kAdmitted). Appends what is to be
  /// sent. False, on other ranks only: it was not this subnet's turn, or one of the deliveries that
  /// waited for it fits it not.
  [[nodiscard]] bool Admit(std::int64_t seq, std::vector<std::uint16_t> choices,
                           std::vector<RankMessage>& messages);

  /// As Scheduler's; `stage` is one of this rank's.
  std::optional<Task> Next(int stage);
  bool HasReady(int stage) const;

  /// A stage of this rank has executed a task taken from Next. Appends what is to be sent;
  /// deliveries between stages of this rank have been made when it returns. True: the subnet is
  /// finished, on rank 0 everywhere, on another rank in its own stages.
  bool Finished(int stage, const Task& task, std::vector<RankMessage>& messages);

  /// As Scheduler's; of stages of this rank.
  void Resident(const Residency& part) { scheduler_.Resident(part); }
  std::vector<Residency> TakeWanted() { return scheduler_.TakeWanted(); }

  /// From rank `from`, another one. `delivery.from`, the stage, and `delivery.is_base` are not
  /// looked at: every rank knows them. False: refused, see above.
  [[nodiscard]] bool Deliver(const Delivery& delivery, int from);
  /// Rank 0: rank `from` has done its part. False: refused. Sets `is_finished`: whether the subnet
  /// is finished everywhere.
  [[nodiscard]] bool PartFinished(std::int64_t seq, int from, bool& is_finished);

  /// Rank 0: subnets admitted and not finished everywhere; another rank: in its own stages.
  std::int64_t in_flight() const;

  /// Layer versions that this rank has sent away, or handed from one of its stages to another.
  std::int64_t versions_moved() const { return versions_moved_; }
  /// Of subnets in flight here.
  const StageRanges& RangesOf(std::int64_t seq) const { return scheduler_.RangesOf(seq); }

  /// The rank whose stage is, of all admitted subnets, the last to use the layer: the one that
  /// holds its newest version once they have finished. -1 where none uses it: every rank has the
  /// version it began with.
  int HolderOf(int layer) const;
  /// That last subnet, or -1.
  std::int64_t LastUserOf(int layer) const;

 private:
  /// Micro-batches whose tasks have arrived from another rank: they come in order.
  struct Arrived {
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
  };

  bool IsLocal(int stage) const { return placement_.RankOf(stage) == rank_; }
  /// Makes the deliveries within this rank, and appends the others.
  void Route(std::vector<RankMessage>& messages);
  bool DeliverAdmitted(const Delivery& delivery, int from);
  bool DeliverTask(const Delivery& delivery, int from);
  bool DeliverVersion(const Delivery& delivery, int from);
  bool MarkFinished(std::int64_t seq, int rank);

  const Placement placement_;
  const int rank_;
  const SchedulerOptions options_;
  Scheduler scheduler_;
  std::vector<Delivery> deliveries_;  ///< empty between two calls
  std::int64_t last_admitted_ = -1;
  std::map<std::int64_t, Arrived> arrived_;  ///< by subnet in flight here
  /// By subnet not yet admitted here; with the rank that sent it.
  std::map<std::int64_t, std::vector<std::pair<Delivery, int>>> early_;
  /// Rank 0: by subnet, the ranks that have not finished it.
  std::map<std::int64_t, std::set<int>> unfinished_;
  std::int64_t versions_moved_ = 0;
};

}  // namespace verbatim
