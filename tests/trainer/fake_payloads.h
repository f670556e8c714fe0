// Channels between ranks of one process, for tests without a GPU: what is sent comes late, and not
// before its receive, in the order of its channel alone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/fake_device.h"
#include "trainer/device_payloads.h"

namespace verbatim {

/// All channels of one run. Received tensors are full of NaN until they come: a stage that computes
/// on one too early computes something else. Thread-safe; outlives the ranks.
class FakePayloads {
 public:
  /// `device` is all ranks', and waits on the host.
  FakePayloads(FakeDevice& device, int ranks, std::uint32_t seed,
               int ranks_with_layer_channels_max = kRanksWithLayerChannelsMax);
  ~FakePayloads();

  OpenPayloads Opener();

  /// From now on nothing comes from this rank or goes to it, as when its process is killed.
  void Kill(int rank);
  /// From now on a channel of this rank is broken, and says why.
  void Break(int rank, const std::string& why);

  std::int64_t transfers(PayloadKind kind) const;
  /// Receives that were let go without what they waited for.
  std::int64_t abandoned() const;

 private:
  class End;

  struct Transfer {
    std::vector<HandedTensor> sent;
    std::vector<at::Tensor> memory;
    Mark arrived;  ///< null before it is received
  };

  void Send(const PayloadChannel& channel, std::vector<HandedTensor> tensors);
  ReceivedPayload Receive(const PayloadChannel& channel, std::span<const TensorLayout> layouts);
  void Abort(int rank);
  void Execute();
  /// The channels whose next transfer can be executed. Sets `has_others`: whether some wait for
  /// what a device has not computed.
  std::vector<PayloadChannel> Ready(bool& has_others) const;
  bool IsGone(const PayloadChannel& channel) const {
    return gone_.contains(channel.from) || gone_.contains(channel.to);
  }

  FakeDevice& device_;
  const int ranks_;
  const int ranks_with_layer_channels_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  std::map<PayloadChannel, std::deque<Transfer>> transfers_;  ///< not yet executed
  std::map<PayloadKind, std::int64_t> executed_;
  std::map<int, std::string> broken_;
  std::set<int> gone_;
  std::set<int> aborted_;
  std::set<int> opened_;
  std::int64_t abandoned_ = 0;
  bool is_over_ = false;
  std::thread thread_;  ///< last
};

}  // namespace verbatim
