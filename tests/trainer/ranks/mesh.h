// Several ranks within one test process, connected over the loopback interface.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/ranks/zeromq_network.h"

namespace verbatim::test {

inline constexpr const char* kToken = "a token for tests alone";
/// Longer than any test takes: no test waits for it but to fail.
inline constexpr std::int64_t kNeverMs = 600'000;
inline constexpr std::chrono::seconds kPatience{120};

/// What one rank's network has told, and who waits for it.
class Inbox {
 public:
  NetworkEvents Events() {
    return {[this](int from, Message message) {
              const std::lock_guard lock(mutex_);
              messages_[from].push_back(std::move(message));
              changed_.notify_all();
            },
            [this](const PeerName& peer, const std::string& why) {
              const std::lock_guard lock(mutex_);
              lost_[peer.rank].push_back(why);
              changed_.notify_all();
            }};
  }

  /// The first `count` messages of a rank, once they are there.
  std::vector<Message> Take(int from, std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return messages_[from].size() >= count; }))
        << messages_[from].size() << " messages of rank " << from << " instead of " << count;
    return std::exchange(messages_[from], {});
  }
  /// Why a rank was lost, once it is.
  std::string WaitForLoss(int rank) {
    std::unique_lock lock(mutex_);
    const bool is_lost = changed_.wait_for(lock, kPatience, [&] { return !lost_[rank].empty(); });
    EXPECT_TRUE(is_lost) << "rank " << rank << " is not lost";
    return is_lost ? lost_[rank].front() : "";
  }
  std::size_t losses() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [rank, reasons] : lost_) count += reasons.size();
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<Message>> messages_;
  std::map<int, std::vector<std::string>> lost_;
};

/// Lines that a network has logged.
class Lines {
 public:
  std::function<void(const std::string&)> Writer() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    };
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  std::string WaitForFirst() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return !lines_.empty(); }));
    return lines_.empty() ? "" : lines_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

struct Mesh {
  explicit Mesh(std::size_t ranks) : inboxes(ranks), networks(ranks), errors(ranks) {}

  // Before the networks, which write to them to their end.
  std::vector<Inbox> inboxes;
  Lines refused;  ///< of rank 0
  std::vector<std::unique_ptr<Network>> networks;
  std::vector<std::string> errors;  ///< of those that have not connected
  std::vector<RankAddress> addresses;

  std::size_t size() const { return networks.size(); }
  void Start() {
    for (std::size_t i = 0; i < size(); ++i) {
      if (networks[i]) networks[i]->Start(inboxes[i].Events());
    }
  }
};

/// No rank times out.
inline ZeroMqOptions PatientOptions() {
  ZeroMqOptions options;
  options.join_timeout_ms = kNeverMs;
  options.peer_timeout_ms = kNeverMs;
  options.alive_interval_ms = 100;
  return options;
}

inline RunKey KeyOf(const std::string& token = kToken) {
  return *RunKey::Make(token, "run");
}

/// Changes options, and may change the key, of one rank.
using Adapt = std::function<void(int rank, ZeroMqOptions& options, RunKey& key)>;

/// Connects ranks at once, a thread each. `adapt` may be empty.
inline std::unique_ptr<Mesh> Connect(int ranks, ZeroMqOptions options = PatientOptions(),
                                     const Adapt& adapt = {}) {
  auto mesh = std::make_unique<Mesh>(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<ZeroMqListener>> listeners;
  for (int rank = 0; rank < ranks; ++rank) {
    ZeroMqOptions own = options;
    RunKey key = KeyOf();
    own.rank = rank;
    own.ranks = ranks;
    if (rank == 0) own.on_refused = mesh->refused.Writer();
    if (adapt) adapt(rank, own, key);
    auto listener = ListenZeroMq(own, key, "127.0.0.1");
    EXPECT_TRUE(listener.has_value()) << listener.error().message;
    if (!listener) return mesh;
    mesh->addresses.push_back(
        {{rank, "host" + std::to_string(rank), 100 + rank}, (*listener)->endpoint()});
    listeners.push_back(*std::move(listener));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    threads.emplace_back([&, i] {
      auto network = listeners[i]->Connect(mesh->addresses);
      if (network) mesh->networks[i] = *std::move(network);
      if (!network) mesh->errors[i] = network.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return mesh;
}

/// A tensor of bytes that follow from `seed`.
inline SentTensor BytesTensor(std::size_t size, unsigned seed) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (std::size_t i = 0; i < size; ++i) {
    (*bytes)[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 7);
  }
  return {DType::kUInt8, {static_cast<std::int64_t>(size)}, bytes->data(), size, bytes};
}

inline bool IsEqual(const SentTensor& a, const SentTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.size == b.size &&
         std::equal(a.data, a.data + a.size, b.data);
}

}  // namespace verbatim::test
