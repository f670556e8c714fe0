// What this rank sends to one other, and what becomes of that connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <zmq.hpp>

#include "trainer/ranks/message.h"
#include "trainer/ranks/socket_monitor.h"
#include "trainer/ranks/zeromq_network.h"

namespace verbatim {

/// Two connections: one for messages, and one for kAlive alone, which so never waits behind a long
/// message. Belongs to one thread. ZeroMQ's exceptions leave it.
class Outbound {
 public:
  /// Begins to connect.
  Outbound(zmq::context_t& context, const ZeroMqOptions& options, const RunKey& key,
           const RankAddress& to);

  zmq::socket_t& monitor() { return monitor_.socket(); }
  /// Notices what became of the connection: does not wait.
  void Watch();
  /// The other rank has let this one in.
  bool is_connected() const { return is_connected_; }
  /// Why the connection is none, or no more; empty while it is or may become one.
  const std::string& broken() const { return broken_; }

  /// Hands a message to ZeroMQ, which holds its tensors until they are sent: does not wait. Returns
  /// the bytes of tensors and text. What cannot be sent is dropped; then the connection is broken.
  std::size_t Send(Message message);
  void SendAlive();

 private:
  zmq::socket_t socket_;
  zmq::socket_t alive_;
  SocketMonitor monitor_;
  std::string endpoint_;
  std::uint64_t sequence_ = 0;
  bool is_connected_ = false;
  std::string broken_;
};

/// Bytes of a message's tensors and text.
std::size_t PayloadBytes(const Message& message);

}  // namespace verbatim
