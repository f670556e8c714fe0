#include "trainer/ranks/outbound.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "trainer/ranks/wire.h"

namespace verbatim {
namespace {

// A rank sends nothing on a connection that another has made, but for the handshake.
constexpr int kReplyBytesMax = 4096;

zmq::socket_t ConnectingSocket(zmq::context_t& context, const ZeroMqOptions& options,
                               const RunKey& key, int to) {
  zmq::socket_t socket(context, zmq::socket_type::push);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::reconnect_ivl, -1);  // never
  socket.set(zmq::sockopt::sndhwm, 0);          // no bound: sending never waits
  socket.set(zmq::sockopt::maxmsgsize, std::int64_t{kReplyBytesMax});
  socket.set(zmq::sockopt::connect_timeout, static_cast<int>(options.join_timeout_ms));
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(options.join_timeout_ms));
  socket.set(zmq::sockopt::ipv6, true);
  if (options.encrypt) {
    const CurveKeys own = key.CurveKeysOf(options.rank);
    socket.set(zmq::sockopt::curve_serverkey, key.CurveKeysOf(to).public_key);
    socket.set(zmq::sockopt::curve_publickey, own.public_key);
    socket.set(zmq::sockopt::curve_secretkey, own.secret_key);
  } else {
    socket.set(zmq::sockopt::plain_username, std::to_string(options.rank));
    socket.set(zmq::sockopt::plain_password, key.Password(options.rank, to));
  }
  return socket;
}

using Owner = std::shared_ptr<const void>;

/// ZeroMQ calls it, in a thread of its own, once a tensor's bytes are sent.
void ReleaseOwner(void* /*data*/, void* owner) {
  delete static_cast<Owner*>(owner);
}

zmq::message_t FrameOf(SentTensor tensor) {
  if (tensor.size == 0) return {};
  auto owner = std::make_unique<Owner>(std::move(tensor.owner));
  // Nobody writes to it: the cast is the library's.
  zmq::message_t frame(const_cast<std::byte*>(tensor.data), tensor.size, ReleaseOwner, owner.get());
  (void)owner.release();
  return frame;
}

}  // namespace

std::size_t PayloadBytes(const Message& message) {
  std::size_t bytes = message.text.size();
  for (const SentTensor& tensor : message.tensors) bytes += tensor.size;
  return bytes;
}

Outbound::Outbound(zmq::context_t& context, const ZeroMqOptions& options, const RunKey& key,
                   const RankAddress& to)
    : socket_(ConnectingSocket(context, options, key, to.name.rank)),
      alive_(ConnectingSocket(context, options, key, to.name.rank)),
      monitor_(context, socket_),
      endpoint_(to.endpoint) {
  socket_.connect(endpoint_);
  alive_.connect(endpoint_);
}

void Outbound::Watch() {
  while (const auto event = monitor_.Next()) {
    switch (event->kind) {
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        is_connected_ = true;
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        broken_ = fmt::format("refused this rank at {}: its token is another", endpoint_);
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        if (broken_.empty()) broken_ = fmt::format("does not answer as a rank at {}", endpoint_);
        break;
      case ZMQ_EVENT_CLOSED:
        if (broken_.empty()) broken_ = fmt::format("cannot be reached at {}", endpoint_);
        break;
      case ZMQ_EVENT_DISCONNECTED:
        if (broken_.empty()) broken_ = "closed its connection";
        break;
      default:
        break;
    }
  }
}

std::size_t Outbound::Send(Message message) {
  const std::size_t payload = PayloadBytes(message);
  const std::string header = EncodeHeader(message, sequence_++);
  zmq::message_t frame(header.data(), header.size());
  const auto flags = [&](std::size_t sent) {
    const bool is_last = sent == message.tensors.size();
    return is_last ? zmq::send_flags::dontwait
                   : zmq::send_flags::dontwait | zmq::send_flags::sndmore;
  };
  bool is_sent = socket_.send(frame, flags(0)).has_value();
  for (std::size_t i = 0; i < message.tensors.size() && is_sent; ++i) {
    frame = FrameOf(std::move(message.tensors[i]));
    is_sent = socket_.send(frame, flags(i + 1)).has_value();
  }
  // There is no bound that could be reached, so no connection is left.
  if (!is_sent && broken_.empty()) broken_ = "closed its connection";
  return payload;
}

void Outbound::SendAlive() {
  const std::string header = EncodeHeader({.kind = MessageKind::kAlive}, 0);
  // The monitor notices where it cannot be sent.
  (void)alive_.send(zmq::buffer(header), zmq::send_flags::dontwait);
}

}  // namespace verbatim
