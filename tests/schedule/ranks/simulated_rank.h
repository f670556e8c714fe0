// One rank of a simulated run: what the trainer does around its scheduler, with stages that take
// their time and messages that take theirs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/rank_scheduler.h"
#include "tests/schedule/ranks/rank_case.h"
#include "tests/schedule/ranks/rank_world.h"
#include "tests/schedule/ranks/simulated_stages.h"

namespace verbatim::ranks_test {

class SimulatedRank {
 public:
  SimulatedRank(const RankWorld& world, int rank)
      : world_(world),
        drawn_(world.drawn),
        rank_(rank),
        scheduler_(*drawn_.space, *drawn_.partition, world.policy, drawn_.options, drawn_.placement,
                   rank),
        stages_(drawn_, world.reference, rank, [this](const std::string& what) { Differs(what); }),
        draws_(Mix(drawn_.seed, static_cast<Hash>(rank))) {}

  /// On rank 0.
  void Start() {
    AdmitSubnets();
    StartTasks();
  }

  void Receive(int from, Packet packet) {
    if (ending_ != Ending::kNone) return;
    Handle(from, std::move(packet));
    StartTasks();
  }

  /// The process is gone: it says nothing any more.
  void Crash() {
    if (ending_ == Ending::kNone) ending_ = Ending::kCrashed;
  }
  void Fail(const std::string& why) {
    if (ending_ != Ending::kNone) return;
    End(Ending::kFailed, why);
    ForOthers(
        [&](int other) { world_.send(rank_, other, {.kind = Packet::Kind::kAbort, .text = why}); });
  }
  /// Rank `lost` will not be heard of any more.
  void OnLost(int lost) {
    const bool has_said_all =
        rank_ == 0 ? is_over_ && !awaited_.contains(lost) : has_sent_layers_ && lost != 0;
    if (!has_said_all) Fail(fmt::format("rank {} is lost", lost));
  }
  /// Somebody asked this process to stop.
  void Stop() {
    if (ending_ != Ending::kNone) return;
    if (rank_ != 0) return world_.send(rank_, 0, {.kind = Packet::Kind::kStop});
    stops_ = true;
    EndIfOver();
  }
  /// The next task to end on this rank throws.
  void FailAtNextTask() { fails_at_next_task_ = true; }

  Ending ending() const { return ending_; }
  const std::string& why() const { return why_; }
  std::int64_t ended_at() const { return ended_at_; }
  std::int64_t admitted() const { return admitted_; }
  std::int64_t finished() const { return finished_; }
  std::int64_t accesses() const { return stages_.accesses(); }
  std::int64_t versions_moved() const { return scheduler_.versions_moved(); }

 private:
  template <typename Call>
  void ForOthers(const Call& call) const {
    for (int other = 0; other < drawn_.placement.ranks(); ++other) {
      if (other != rank_) call(other);
    }
  }

  void End(Ending ending, const std::string& why) {
    ending_ = ending;
    why_ = why;
    ended_at_ = world_.events.now();
  }

  void Differs(const std::string& what) {
    world_.differs(fmt::format("rank {}: {}", rank_, what));
    Fail(what);
  }
  void Check(bool holds, const std::string& what) {
    if (!holds) Differs(what);
  }

  void Handle(int from, Packet packet) {
    switch (packet.kind) {
      case Packet::Kind::kAdmitted:
        return Admit(packet.seq);
      case Packet::Kind::kDelivery:
        return Deliver(from, packet);
      case Packet::Kind::kFinished: {
        if (packet.cargo.input != 0) losses_[packet.seq] = packet.cargo.input;
        bool is_finished = false;
        Check(scheduler_.PartFinished(packet.seq, from, is_finished), "refused a finished part");
        if (is_finished) OnFinished(packet.seq);
        return;
      }
      case Packet::Kind::kStop:
        return Stop();
      case Packet::Kind::kEnd:
        return SendLayers();
      case Packet::Kind::kLayer:
        return CheckFinal(packet.layer, packet.cargo.version);
      case Packet::Kind::kDone:
        return OnDone(from);
      case Packet::Kind::kAbort:
        return End(Ending::kFailed, packet.text);
    }
  }

  // Admission and the end of subnets.

  void AdmitSubnets() {
    while (!stops_ && scheduler_.CanAdmit() && admitted_ < std::ssize(drawn_.sequence)) {
      Admit(drawn_.sequence[admitted_]);
    }
    EndIfOver();
  }

  void Admit(std::int64_t seq) {
    ++admitted_;
    std::vector<RankMessage> messages;
    if (!scheduler_.Admit(seq, ChoicesOf(drawn_, seq), messages)) return Differs("refused subnet");
    stages_.Open(seq, scheduler_.RangesOf(seq));
    Send(messages);
  }

  void OnFinished(std::int64_t seq) {
    ++finished_;
    if (const Hash own = stages_.TakeLoss(seq); own != 0) losses_[seq] = own;
    Check(losses_[seq] == world_.reference.Loss(seq), fmt::format("subnet {}: loss", seq));
    losses_.erase(seq);
    AdmitSubnets();
  }

  void EndIfOver() {
    const bool has_more = !stops_ && admitted_ < std::ssize(drawn_.sequence);
    if (has_more || scheduler_.in_flight() > 0 || is_over_) return;
    is_over_ = true;
    ForOthers([&](int other) {
      awaited_.insert(other);
      world_.send(rank_, other, {.kind = Packet::Kind::kEnd});
    });
    CheckOwnFinal();
    if (awaited_.empty()) End(Ending::kComplete, "");
  }

  /// Another rank than 0: the layers that it holds, and that it has nothing more to say.
  void SendLayers() {
    for (const Layer& layer : drawn_.space->layers()) {
      if (scheduler_.HolderOf(layer.id) != rank_) continue;
      const std::optional<LayerVersion> state = stages_.State(layer.id);
      if (!state) return Differs(fmt::format("does not hold layer {}", layer.id));
      world_.send(rank_, 0,
                  {.kind = Packet::Kind::kLayer, .cargo = {.version = *state}, .layer = layer.id});
    }
    world_.send(rank_, 0, {.kind = Packet::Kind::kDone});
    has_sent_layers_ = true;
  }

  void OnDone(int from) {
    if (rank_ != 0) return End(Ending::kComplete, "");
    awaited_.erase(from);
    if (!awaited_.empty()) return;
    Check(layers_left_.empty(), "not every layer came back");
    ForOthers([&](int other) { world_.send(rank_, other, {.kind = Packet::Kind::kDone}); });
    End(Ending::kComplete, "");
  }

  void CheckOwnFinal() {
    for (const Layer& layer : drawn_.space->layers()) {
      layers_left_.insert(layer.id);
      const int holder = scheduler_.HolderOf(layer.id);
      if (holder > 0) continue;
      const std::optional<LayerVersion> state = stages_.State(layer.id);
      Check(state.has_value(), fmt::format("does not hold layer {}", layer.id));
      if (state) CheckFinal(layer.id, *state);
    }
  }

  void CheckFinal(int layer, const LayerVersion& version) {
    layers_left_.erase(layer);
    const std::int64_t last = admitted_ == 0 ? -1 : drawn_.sequence[admitted_ - 1];
    Check(version == world_.reference.LeftBy(last, layer), fmt::format("final layer {}", layer));
    Check(version.seq == scheduler_.LastUserOf(layer), fmt::format("holder of layer {}", layer));
  }

  // Messages.

  void Send(const std::vector<RankMessage>& messages) {
    for (const RankMessage& message : messages) {
      Packet packet{.seq = message.seq, .delivery = message.delivery};
      if (message.kind == RankMessage::Kind::kFinished) {
        packet.kind = Packet::Kind::kFinished;
        packet.cargo.input = stages_.TakeLoss(message.seq);
      } else if (message.kind == RankMessage::Kind::kDelivery) {
        packet.kind = Packet::Kind::kDelivery;
        packet.cargo = stages_.Load(message.delivery);
        packet.delivery.from = -1;  // messages carry neither
        packet.delivery.is_base = false;
        if (!Mutate(packet)) continue;
      }
      world_.send(rank_, message.to, std::move(packet));
    }
  }

  /// False: the packet is lost.
  bool Mutate(Packet& packet) {
    if (packet.delivery.kind != Delivery::Kind::kVersion || !draws_.OneIn(10)) return true;
    if (drawn_.mutation == Mutation::kOlderVersion) {
      packet.cargo.version =
          world_.reference.Access(packet.cargo.version.seq, packet.delivery.layer).base;
    }
    return drawn_.mutation != Mutation::kLostVersion;
  }

  void Deliver(int from, const Packet& packet) {
    const bool is_version = packet.delivery.kind == Delivery::Kind::kVersion;
    if (is_version && drawn_.mutation == Mutation::kVersionBeforeItsState) {
      world_.events.At(world_.events.now() + draws_.Between(0, 1000),
                       [this, packet] { stages_.Place(packet.delivery, packet.cargo); });
    } else {
      stages_.Place(packet.delivery, packet.cargo);
    }
    Check(scheduler_.Deliver(packet.delivery, from), "refused a delivery");
  }

  // Tasks.

  void StartTasks() {
    if (ending_ != Ending::kNone) return;
    for (int stage = drawn_.placement.Begin(rank_); stage < drawn_.placement.End(rank_); ++stage) {
      if (busy_.contains(stage) || !scheduler_.HasReady(stage)) continue;
      const Task task = *scheduler_.Next(stage);
      busy_.insert(stage);
      stages_.Begin(stage, task);
      const std::int64_t duration = draws_.Between(1, draws_.OneIn(20) ? 2000 : 40);
      world_.events.At(world_.events.now() + duration,
                       [this, stage, task] { OnTaskDone(stage, task); });
    }
  }

  void OnTaskDone(int stage, const Task& task) {
    busy_.erase(stage);
    if (ending_ != Ending::kNone) return;
    if (fails_at_next_task_) return Fail(fmt::format("stage {} failed", stage));
    stages_.Execute(stage, task);
    std::vector<RankMessage> messages;
    const bool is_finished = scheduler_.Finished(stage, task, messages);
    Send(messages);
    if (is_finished && rank_ == 0) OnFinished(task.seq);
    StartTasks();
  }

  const RankWorld& world_;
  const RankCase& drawn_;
  const int rank_;
  RankScheduler scheduler_;
  SimulatedStages stages_;
  SeededDraws draws_;
  std::map<std::int64_t, Hash> losses_;  ///< rank 0: of subnets that are not yet finished
  std::set<int> busy_;                   ///< stages
  std::set<int> awaited_;                ///< rank 0, at the end: ranks that have not said kDone
  std::set<int> layers_left_;            ///< rank 0, at the end: not yet come back
  std::int64_t admitted_ = 0;
  std::int64_t finished_ = 0;
  bool stops_ = false;
  bool is_over_ = false;
  bool has_sent_layers_ = false;
  bool fails_at_next_task_ = false;
  Ending ending_ = Ending::kNone;
  std::string why_;
  std::int64_t ended_at_ = 0;
};

}  // namespace verbatim::ranks_test
