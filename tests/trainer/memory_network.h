// Ranks in one process, connected by queues: messages of one rank to another keep their order, and
// a seed decides how messages of different ranks mix.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/ranks/network.h"

namespace verbatim {

/// What becomes of a message when it is sent. kSenderLost: with it the sender is lost, as a process
/// is that gets killed.
enum class Fate { kArrives, kSwallowed, kSenderLost };
using SendFilter = std::function<Fate(int from, int to, const Message& message)>;

/// What connects the ranks of one run. Thread-safe; outlives the networks.
class MemoryNetworks {
 public:
  MemoryNetworks(int ranks, std::uint32_t seed, SendFilter filter = {});
  std::unique_ptr<Network> Connect(int rank);

 private:
  friend class MemoryNetwork;

  /// What is on its way to a rank.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, std::deque<Message>> messages;  ///< by sender
    std::vector<int> lost;                        ///< to be told
    bool expects_leaving = false;
    bool is_closed = false;
    NetworkEvents events;
    std::thread thread;
    std::mt19937 random;
  };

  void Deliver(Inbox& inbox);
  void Push(int from, int to, Message message);
  /// Nothing comes from the rank any more; the others are told, if they do not expect it.
  void Lose(int rank);

  std::vector<std::unique_ptr<Inbox>> inboxes_;  ///< by rank
  SendFilter filter_;
  std::mutex mutex_;
  std::vector<bool> gone_;  ///< by rank
};

}  // namespace verbatim
