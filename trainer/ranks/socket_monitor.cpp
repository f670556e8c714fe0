#include "trainer/ranks/socket_monitor.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace verbatim {
namespace {

// Not those of a process that can open no more files: they would come without end.
constexpr int kEvents = ZMQ_EVENT_ALL & ~ZMQ_EVENT_ACCEPT_FAILED;

}  // namespace

SocketMonitor::SocketMonitor(zmq::context_t& context, zmq::socket_t& watched)
    : watched_(watched), socket_(context, zmq::socket_type::pair) {
  // Names need to differ within a context only.
  const std::string name = fmt::format("inproc://monitor-{}", watched.handle());
  if (zmq_socket_monitor(watched.handle(), name.c_str(), kEvents) != 0) throw zmq::error_t();
  socket_.set(zmq::sockopt::linger, 0);
  // No bound: libzmq's thread, which serves every connection, waits where an event finds no room.
  socket_.set(zmq::sockopt::rcvhwm, 0);
  socket_.connect(name);
}

// It would wait for ever where an event finds no socket at all.
SocketMonitor::~SocketMonitor() {
  zmq_socket_monitor(watched_.handle(), nullptr, 0);
}

std::optional<SocketMonitor::Event> SocketMonitor::Next() {
  zmq::message_t numbers;
  zmq::message_t address;
  if (!socket_.recv(numbers, zmq::recv_flags::dontwait)) return std::nullopt;
  if (numbers.more()) (void)socket_.recv(address, zmq::recv_flags::dontwait);
  std::uint16_t kind = 0;
  std::uint32_t value = 0;
  if (numbers.size() != sizeof kind + sizeof value) return Event{};
  std::memcpy(&kind, numbers.data<char>(), sizeof kind);
  std::memcpy(&value, numbers.data<char>() + sizeof kind, sizeof value);
  return Event{kind, static_cast<int>(value)};
}

}  // namespace verbatim
