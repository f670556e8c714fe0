#include "trainer/ranks/inbound.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <utility>

namespace verbatim {
namespace {

constexpr const char* kZapDomain = "verbatim";
// The property that the handler's answer gives to every message of a connection.
constexpr const char* kUserId = "User-Id";
// More than ranks that connect at once.
constexpr int kBacklog = 1024;

/// "10.0.0.9:4711", of whoever is at the other end of a connection.
std::string AddressOf(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(file, general, &size) != 0 ||
      getnameinfo(general, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "somebody who left at once";
  }
  return fmt::format("{}:{}", host.data(), port.data());
}

zmq::socket_t ListeningSocket(zmq::context_t& context, const ZeroMqOptions& options,
                              const RunKey& key) {
  zmq::socket_t socket(context, zmq::socket_type::pull);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, options.message_bytes_max);
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(options.handshake_timeout_ms));
  socket.set(zmq::sockopt::backlog, kBacklog);
  socket.set(zmq::sockopt::zap_domain, kZapDomain);
  if (options.encrypt) {
    socket.set(zmq::sockopt::curve_server, true);
    socket.set(zmq::sockopt::curve_secretkey, key.CurveKeysOf(options.rank).secret_key);
  } else {
    socket.set(zmq::sockopt::plain_server, true);
  }
  return socket;
}

std::string WhyOf(const SocketMonitor::Event& failure) {
  if (failure.kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
    return "it did not say who it is";
  }
  if (failure.value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
    return "it does not prove who it is in the way of this run (password or encryption)";
  }
  if (failure.value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC) return "its keys do not fit";
  return fmt::format("it does not speak this protocol (0x{:x})", failure.value);
}

}  // namespace

Inbound::Inbound(zmq::context_t& context, const ZeroMqOptions& options, const RunKey& key,
                 const std::string& address, RefusalLog& log)
    : log_(log),
      zap_(context, key, options.rank, options.ranks, options.encrypt,
           [this](const std::string& from, const std::string& why) {
             ++denied_;
             log_.Add(from, why);
           }),
      socket_(ListeningSocket(context, options, key)),
      monitor_(context, socket_) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  socket_.set(zmq::sockopt::ipv6, is_ipv6);
  socket_.bind(is_ipv6 ? fmt::format("tcp://[{}]:*", address) : fmt::format("tcp://{}:*", address));
  endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
}

std::vector<zmq::socket_t*> Inbound::sockets() {
  return {&socket_, &monitor_.socket(), &zap_.socket()};
}

std::vector<int> Inbound::Watch() {
  zap_.Answer();
  while (const auto event = monitor_.Next()) OnMonitorEvent(*event);
  return std::exchange(closed_, {});
}

// One thread of ZeroMQ serves all connections, so a failure is the next one's that closes.
void Inbound::OnMonitorEvent(const SocketMonitor::Event& event) {
  switch (event.kind) {
    case ZMQ_EVENT_ACCEPTED:
      connections_[event.value] = {AddressOf(event.value)};
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      handshake_failure_ = WhyOf(event);
      return;
    case ZMQ_EVENT_DISCONNECTED:
      OnDisconnected(event.value);
      return;
    default:
      return;
  }
}

void Inbound::OnDisconnected(int file) {
  Connection connection = std::exchange(connections_[file], {});
  connections_.erase(file);
  connection.failure = std::exchange(handshake_failure_, "");
  if (connection.has_messages) closed_.push_back(connection.rank);
  if (connection.rank < 0) closed_unknown_[file] = std::move(connection);
}

void Inbound::LogStrangers() {
  for (const auto& [file, connection] : std::exchange(closed_unknown_, {})) {
    if (connection.failure.empty() && denied_ > 0) {
      --denied_;
      continue;
    }
    log_.Add(connection.address,
             connection.failure.empty() ? "it does not speak this protocol" : connection.failure);
  }
}

// A file descriptor may have been somebody else's before: what the monitor says about that was said
// before this connection's first message came.
void Inbound::Attribute(int file, int rank, bool has_messages) {
  const auto known = connections_.find(file);
  if (known == connections_.end() || known->second.rank != rank) {
    while (const auto event = monitor_.Next()) OnMonitorEvent(*event);
  }
  const auto connection = connections_.find(file);
  if (connection != connections_.end()) {
    connection->second.rank = rank;
    connection->second.has_messages = connection->second.has_messages || has_messages;
    return;
  }
  closed_unknown_.erase(file);
  if (has_messages) closed_.push_back(rank);
}

std::optional<Inbound::Received> Inbound::Next() {
  zmq::message_t header;
  if (!socket_.recv(header, zmq::recv_flags::dontwait)) {
    LogStrangers();
    return std::nullopt;
  }
  const std::string user = header.gets(kUserId);
  const int file = header.get(ZMQ_SRCFD);
  Received received{-1, header.size(), DecodedMessage{}};
  std::from_chars(user.data(), user.data() + user.size(), received.from);
  std::vector<Frame> frames;
  for (bool more = header.more(); more;) {
    auto frame = std::make_shared<zmq::message_t>();
    // Whole messages arrive, so this does not wait.
    if (!socket_.recv(*frame, zmq::recv_flags::dontwait)) break;
    more = frame->more();
    received.bytes += frame->size();
    frames.push_back({frame->data<std::byte>(), frame->size(), frame});
  }
  received.message = DecodeMessage(header.to_string_view(), std::move(frames));
  const bool is_alive = received.message && received.message->message.kind == MessageKind::kAlive;
  Attribute(file, received.from, !is_alive);
  return received;
}

}  // namespace verbatim
