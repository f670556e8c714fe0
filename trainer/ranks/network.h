// The network between the ranks of a run, whatever carries it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "trainer/ranks/message.h"

namespace verbatim {

/// Who is at the other end, for messages to people.
struct PeerName {
  int rank = 0;
  std::string host;
  std::int64_t process = 0;
};

/// "rank 2 (host b, process 4711)".
std::string Describe(const PeerName& peer);

/// Counted since the start, this rank's view.
struct NetworkTraffic {
  std::int64_t messages_sent = 0;
  std::int64_t bytes_sent = 0;  ///< payload of tensors and texts
};

/// What arrives. Calls come from one thread, the network's, one at a time.
struct NetworkEvents {
  /// Messages of one rank come once each and in order; the network's own never.
  std::function<void(int from, Message message)> on_message;
  /// A rank is gone: nothing was heard of it for too long, its connection broke, it sent what no
  /// rank sends. At most once per rank; nothing of it follows. `why` reads after its name: "was
  /// not heard from for 30 s".
  std::function<void(const PeerName& peer, const std::string& why)> on_lost;
};

/// All ranks of a run are connected when one of these exists.
class Network {
 public:
  virtual ~Network() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual PeerName NameOf(int rank) const = 0;

  /// From now on events come; what arrived before comes first. Call once.
  virtual void Start(NetworkEvents events) = 0;
  /// Any thread; does not wait. To another rank. What is sent to a lost rank is dropped. Tensors
  /// are not copied: their owners are held until they are on their way.
  virtual void Send(int to, Message message) = 0;
  /// A rank that leaves from now on is not lost: the run is over. Any thread.
  virtual void ExpectLeaving() = 0;
  /// Ends all events; none is under way when it returns. Sends what is queued and waits, for as
  /// long as `linger_ms` at most, until every other rank has it or is gone. Not from inside an
  /// event.
  virtual void Close(std::int64_t linger_ms) = 0;
  virtual NetworkTraffic Traffic() const = 0;
};

}  // namespace verbatim
