// Channels between devices of ranks: which there are, and that no circle of waiting ranks can form
// on them, whatever is sent when; on fewer queues than channels it does.
#include "trainer/payload_channel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trainer/device_payloads.h"

namespace verbatim {
namespace {

using Kind = PayloadKind;

TEST(PayloadChannelTest, BothEndsCountTheSameChannelsInOneOrder) {
  for (const int ranks : {1, 2, 3, 5, kRanksWithLayerChannelsMax, kRanksWithLayerChannelsMax + 1}) {
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        std::vector<std::vector<PayloadChannel>> seen;
        for (const int rank : {from, to}) {
          seen.emplace_back();
          for (const PayloadChannel& channel : ChannelsAt(rank, ranks)) {
            if (channel.from == from && channel.to == to) seen.back().push_back(channel);
          }
        }
        EXPECT_EQ(seen[0], seen[1]);
        const bool are_neighbours = from - to == 1 || to - from == 1;
        const bool has_layers = from != to && ranks <= kRanksWithLayerChannelsMax;
        EXPECT_EQ(seen[0].size(), std::size_t{are_neighbours} + std::size_t{has_layers});
      }
    }
  }
  EXPECT_EQ(Describe(PayloadChannel{Kind::kLayer, 0, 2}), "layers from rank 0 to rank 2");
}

TEST(PayloadChannelTest, AChannelEndsWhereItsStageIs) {
  PayloadEnds ends{1, 3, {at::kCUDA, 0}, {at::kCUDA, 2}, {at::kCUDA, 1}};
  EXPECT_EQ(ends.DeviceOf({Kind::kForward, 0, 1}).index(), 0);
  EXPECT_EQ(ends.DeviceOf({Kind::kForward, 1, 2}).index(), 2);
  EXPECT_EQ(ends.DeviceOf({Kind::kBackward, 2, 1}).index(), 2);
  EXPECT_EQ(ends.DeviceOf({Kind::kBackward, 1, 0}).index(), 0);
  EXPECT_EQ(ends.DeviceOf({Kind::kLayer, 1, 0}).index(), 1);
}

TEST(PayloadChannelTest, WaitingChannelsLeaveMostOfADeviceFree) {
  for (const int processors : {4, 40, 108, 132, 160}) {
    for (int ranks = 2; ranks <= 2 * kRanksWithLayerChannelsMax; ++ranks) {
      const int channels = static_cast<int>(ChannelsAt(1, ranks).size());
      const int blocks = BlocksPerChannel(processors, channels);
      EXPECT_GE(blocks, 1);
      EXPECT_LE(blocks, 8);
      EXPECT_TRUE(blocks == 1 || 4 * blocks * channels <= processors);
    }
  }
  EXPECT_LE(ChannelsAt(1, kRanksWithLayerChannelsMax).size(), 26u);
  EXPECT_LE(ChannelsAt(1, 1000).size(), 4u);
}

/// Which queue of a rank's device executes its end of a channel.
using QueueOf = std::function<int(int rank, const PayloadChannel& channel)>;

/// Ranks that compute, send each other tensors at random, and announce them by messages that take
/// their time, on devices that know nothing but their queues. What a rank computes may wait for
/// anything that it has been told of; its host may stop to wait for what it has asked to compute.
class Simulation {
 public:
  Simulation(int ranks, std::uint32_t seed, QueueOf queue_of)
      : random_(seed), queue_of_(std::move(queue_of)), ranks_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const PayloadChannel& channel : ChannelsAt(rank, ranks)) {
        if (channel.from == rank) ranks_[rank].outgoing.push_back(channel);
      }
    }
  }

  /// Whether everything is executed in the end.
  bool Run() {
    while (true) {
      std::vector<std::function<void()>> possible;
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) AddActs(rank, possible);
      AddTransfers(possible);
      if (possible.empty()) break;
      possible[random_() % possible.size()]();
    }
    for (const Rank& rank : ranks_) {
      if (rank.asked < kTasks || !rank.computing.empty()) return false;
      for (const auto& [queue, halves] : rank.queues) {
        if (!halves.empty()) return false;
      }
    }
    return true;
  }

 private:
  static constexpr int kTasks = 12;

  struct TransferState {
    PayloadChannel channel;
    int task = 0;  ///< of the sender: what computes the tensor
    bool is_executed = false;
  };
  struct Work {
    std::vector<int> inputs;  ///< transfers
  };
  struct Rank {
    std::vector<PayloadChannel> outgoing;
    int asked = 0;                           ///< tasks that the host has enqueued
    int computed = 0;                        ///< of those
    std::deque<Work> computing;              ///< enqueued and not computed
    std::map<int, std::deque<int>> queues;   ///< of transfers' halves
    std::map<int, std::deque<int>> inboxes;  ///< by sender: announced transfers
    std::vector<int> told;                   ///< transfers whose receives are enqueued
    std::optional<int> awaited;              ///< the host waits until so many are computed
  };

  void AddActs(int index, std::vector<std::function<void()>>& possible) {
    Rank& rank = ranks_[index];
    if (!rank.computing.empty() && AreExecuted(rank.computing.front().inputs)) {
      possible.push_back([&rank] {
        rank.computing.pop_front();
        ++rank.computed;
      });
    }
    if (rank.awaited && rank.computed < *rank.awaited) return;
    rank.awaited.reset();
    if (rank.asked < kTasks) possible.push_back([this, index] { Ask(index); });
    for (auto& [from, inbox] : rank.inboxes) {
      if (inbox.empty()) continue;
      possible.push_back([this, index, &rank, &inbox] {
        const int transfer = inbox.front();
        inbox.pop_front();
        rank.queues[queue_of_(index, transfers_[transfer].channel)].push_back(transfer);
        rank.told.push_back(transfer);
      });
    }
  }

  /// The host enqueues a task, and sends what it computes, perhaps to several ranks.
  void Ask(int index) {
    Rank& rank = ranks_[index];
    Work work;
    for (const int transfer : rank.told) {
      if (random_() % 3 == 0) work.inputs.push_back(transfer);
    }
    rank.computing.push_back(std::move(work));
    ++rank.asked;
    for (const PayloadChannel& channel : rank.outgoing) {
      if (random_() % 3 != 0) continue;
      const int transfer = static_cast<int>(transfers_.size());
      transfers_.push_back({channel, rank.asked, false});
      rank.queues[queue_of_(index, channel)].push_back(transfer);
      ranks_[channel.to].inboxes[index].push_back(transfer);
    }
    if (random_() % 4 == 0) rank.awaited = rank.asked;
  }

  void AddTransfers(std::vector<std::function<void()>>& possible) {
    for (int i = 0; i < static_cast<int>(transfers_.size()); ++i) {
      TransferState& transfer = transfers_[i];
      const PayloadChannel& channel = transfer.channel;
      auto& sending = ranks_[channel.from].queues[queue_of_(channel.from, channel)];
      auto& receiving = ranks_[channel.to].queues[queue_of_(channel.to, channel)];
      const bool is_next = !transfer.is_executed && !sending.empty() && sending.front() == i &&
                           !receiving.empty() && receiving.front() == i;
      if (!is_next || ranks_[channel.from].computed < transfer.task) continue;
      possible.push_back([&transfer, &sending, &receiving] {
        transfer.is_executed = true;
        sending.pop_front();
        receiving.pop_front();
      });
    }
  }

  bool AreExecuted(const std::vector<int>& inputs) const {
    for (const int input : inputs) {
      if (!transfers_[input].is_executed) return false;
    }
    return true;
  }

  std::mt19937 random_;
  const QueueOf queue_of_;
  std::vector<Rank> ranks_;
  std::deque<TransferState> transfers_;
};

std::uint32_t Seeds() {
  const char* given = std::getenv("VERBATIM_TEST_SEEDS");
  return given ? static_cast<std::uint32_t>(std::atoi(given)) : 200;
}

/// How many of the runs end with ranks that wait for each other.
int Circles(int ranks, const QueueOf& queue_of) {
  int circles = 0;
  for (std::uint32_t seed = 0; seed < Seeds(); ++seed) {
    if (!Simulation(ranks, seed, queue_of).Run()) ++circles;
  }
  return circles;
}

/// A queue for each channel, as NcclChannel has one.
int OwnQueue(int rank, const PayloadChannel& channel) {
  const bool is_sender = channel.from == rank;
  const int other = is_sender ? channel.to : channel.from;
  return (other * 3 + static_cast<int>(channel.kind)) * 2 + (is_sender ? 1 : 0);
}

TEST(PayloadOrderTest, NoCircleFormsOnChannelsOfTheirOwn) {
  for (const int ranks : {2, 3, 4, 5}) {
    EXPECT_EQ(Circles(ranks, OwnQueue), 0)
        << ranks << " ranks; VERBATIM_TEST_SEEDS=" << Seeds() << " device_test "
        << "--gtest_filter=PayloadOrderTest.*";
  }
}

TEST(PayloadOrderTest, OneQueueForEachDirectionOfAPairIsEnough) {
  const auto by_pair = [](int rank, const PayloadChannel& channel) {
    return channel.from == rank ? 2 * channel.to : 2 * channel.from + 1;
  };
  for (const int ranks : {2, 3, 4, 5}) EXPECT_EQ(Circles(ranks, by_pair), 0) << ranks << " ranks";
}

TEST(PayloadOrderTest, OneCommunicatorForAllFormsCircles) {
  for (const int ranks : {2, 3, 4}) {
    EXPECT_GT(Circles(ranks, [](int, const PayloadChannel&) { return 0; }), 0) << ranks;
  }
}

TEST(PayloadOrderTest, OneCommunicatorForEachKindFormsCircles) {
  const auto by_kind = [](int, const PayloadChannel& channel) {
    return static_cast<int>(channel.kind);
  };
  for (const int ranks : {2, 3, 4}) EXPECT_GT(Circles(ranks, by_kind), 0) << ranks;
}

TEST(PayloadOrderTest, ChannelsThatShareHardwareQueuesFormCircles) {
  const auto shared = [](int rank, const PayloadChannel& channel) {
    return OwnQueue(rank, channel) % 4;
  };
  EXPECT_GT(Circles(5, shared), 0);
}

}  // namespace
}  // namespace verbatim
