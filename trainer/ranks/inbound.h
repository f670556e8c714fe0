// What other ranks send to this one: the listening socket, and whose its connections are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "base/status.h"
#include "trainer/ranks/refusal_log.h"
#include "trainer/ranks/socket_monitor.h"
#include "trainer/ranks/wire.h"
#include "trainer/ranks/zap_handler.h"
#include "trainer/ranks/zeromq_network.h"

namespace verbatim {

/// Belongs to one thread at a time. ZeroMQ's exceptions leave it.
class Inbound {
 public:
  struct Received {
    int from = -1;          ///< as its connection proved
    std::size_t bytes = 0;  ///< of all frames
    Result<DecodedMessage> message;
  };

  /// Listens on a free port of `address`. `log` must outlive this.
  Inbound(zmq::context_t& context, const ZeroMqOptions& options, const RunKey& key,
          const std::string& address, RefusalLog& log);

  const std::string& endpoint() const { return endpoint_; }
  /// To be polled: readable where there is something to do.
  std::vector<zmq::socket_t*> sockets();

  /// Lets ranks in and notices connections that closed; returns the ranks whose messages came over
  /// one of these, and are all received when Next has none left. Does not wait.
  std::vector<int> Watch();
  /// Whether Watch would return any, though no socket is readable: Next has noticed them.
  bool has_closed() const { return !closed_.empty(); }
  /// The next message, if there is one: does not wait.
  std::optional<Received> Next();

 private:
  struct Connection {
    std::string address;
    int rank = -1;              ///< whose it is, once a message has come
    bool has_messages = false;  ///< other than kAlive
    std::string failure;        ///< of its handshake
  };

  void OnMonitorEvent(const SocketMonitor::Event& event);
  void OnDisconnected(int file);
  /// Of whoever has gone, and sent no message of a rank.
  void LogStrangers();
  /// Whose connection the file descriptor is.
  void Attribute(int file, int rank, bool has_messages);

  RefusalLog& log_;
  std::int64_t denied_ = 0;  ///< connections that the handler has logged and that are still open
  ZapHandler zap_;           // before the socket, whose connections ask it
  zmq::socket_t socket_;
  SocketMonitor monitor_;
  std::string endpoint_;
  std::map<int, Connection> connections_;     ///< by file descriptor
  std::map<int, Connection> closed_unknown_;  ///< none of their messages is taken yet, if any came
  std::string handshake_failure_;             ///< of the connection that closes next
  std::vector<int> closed_;
};

}  // namespace verbatim
