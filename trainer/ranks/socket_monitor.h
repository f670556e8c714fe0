// What becomes of a ZeroMQ socket's connections.
#pragma once

#include <optional>
#include <zmq.hpp>

namespace verbatim {

/// Belongs to the thread of the socket that it watches, which must outlive it.
class SocketMonitor {
 public:
  struct Event {
    int kind = 0;   ///< ZMQ_EVENT_…
    int value = 0;  ///< a file descriptor, an error number or a protocol error: see the kind
  };

  SocketMonitor(zmq::context_t& context, zmq::socket_t& watched);
  ~SocketMonitor();
  SocketMonitor(const SocketMonitor&) = delete;
  SocketMonitor& operator=(const SocketMonitor&) = delete;

  /// Readable where there is an event.
  zmq::socket_t& socket() { return socket_; }
  /// The next event, if there is one: does not wait.
  std::optional<Event> Next();

 private:
  zmq::socket_t& watched_;
  zmq::socket_t socket_;
};

}  // namespace verbatim
