// A run of several ranks under a virtual clock, from a seed: the same scheduler that ranks of real
// runs ask, over links with delays, with stages that compute hashes, and with ranks that die.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/schedule/ranks/simulated_rank.h"
#include "tests/schedule/ranks/virtual_network.h"

namespace verbatim::ranks_test {

/// What a simulated run showed.
struct RankResult {
  std::vector<std::string> differences;  ///< from the sequential reference; the first ones
  bool is_stuck = false;                 ///< some rank waits for ever
  std::vector<Ending> endings;           ///< by rank
  std::int64_t planned = 0;
  std::int64_t admitted = 0;
  std::int64_t finished = 0;
  std::int64_t accesses = 0;
  std::int64_t packets = 0;
  std::int64_t versions_moved = 0;
  std::int64_t versions_sent = 0;  ///< of those, to other ranks
  std::int64_t ended_at = 0;       ///< in ticks

  bool IsSound() const { return differences.empty() && !is_stuck; }
};

class RankSimulation {
 public:
  explicit RankSimulation(RankCase drawn)
      : drawn_(std::move(drawn)),
        policy_(*MakePolicy(drawn_.mutation == Mutation::kNoWaiting ? "asynchronous" : "causal")),
        reference_(*drawn_.space, drawn_.options.microbatches),
        network_(events_, Mix(drawn_.seed, 99), drawn_.mutation != Mutation::kReorderedLinks,
                 [this](int from, int to, Packet packet) {
                   ranks_[to]->Receive(from, std::move(packet));
                 }),
        world_{drawn_,
               *policy_,
               reference_,
               events_,
               [this](int from, int to, Packet packet) {
                 ++result_.packets;
                 result_.versions_sent += packet.kind == Packet::Kind::kDelivery &&
                                          packet.delivery.kind == Delivery::Kind::kVersion;
                 network_.Send(from, to, std::move(packet));
               },
               [this](const std::string& what) {
                 if (result_.differences.size() < 5) result_.differences.push_back(what);
               }} {
    for (const std::int64_t seq : drawn_.sequence) reference_.Train(seq, ChoicesOf(drawn_, seq));
    for (int rank = 0; rank < drawn_.placement.ranks(); ++rank) {
      ranks_.push_back(std::make_unique<SimulatedRank>(world_, rank));
    }
  }

  RankResult Run() {
    events_.At(0, [this] { ranks_[0]->Start(); });
    if (drawn_.trouble != Trouble::kNone) {
      events_.At(drawn_.trouble_at, [this] { MakeTrouble(); });
    }
    result_.is_stuck = !events_.Run(/*limit=*/1'000'000);
    Summarize();
    return result_;
  }

 private:
  void MakeTrouble() {
    SimulatedRank& rank = *ranks_[drawn_.troubled_rank];
    if (drawn_.trouble == Trouble::kStop) return rank.Stop();
    if (drawn_.trouble == Trouble::kFailingStage) return rank.FailAtNextTask();
    if (rank.ending() != Ending::kNone) return;
    rank.Crash();
    SeededDraws draws(Mix(drawn_.seed, 98));
    for (int other = 0; other < drawn_.placement.ranks(); ++other) {
      if (other == drawn_.troubled_rank) continue;
      // Part of what it sent still arrives, and nothing once it is known to be lost.
      const std::int64_t noticed = events_.now() + draws.Between(1, drawn_.peer_timeout);
      network_.Cut(drawn_.troubled_rank, other, draws.Between(events_.now(), noticed));
      events_.At(noticed, [this, other] { ranks_[other]->OnLost(drawn_.troubled_rank); });
    }
  }

  void Summarize() {
    result_.planned = std::ssize(drawn_.sequence);
    result_.admitted = ranks_[0]->admitted();
    result_.finished = ranks_[0]->finished();
    for (const auto& rank : ranks_) {
      if (rank->ending() == Ending::kNone) result_.is_stuck = true;
      result_.endings.push_back(rank->ending());
      result_.accesses += rank->accesses();
      result_.versions_moved += rank->versions_moved();
      result_.ended_at = std::max(result_.ended_at, rank->ended_at());
    }
  }

  RankCase drawn_;
  std::unique_ptr<Policy> policy_;
  SequentialReference reference_;
  EventQueue events_;
  VirtualNetwork<Packet> network_;
  RankWorld world_;
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;
  RankResult result_;
};

}  // namespace verbatim::ranks_test
