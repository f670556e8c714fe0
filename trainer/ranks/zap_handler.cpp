#include "trainer/ranks/zap_handler.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace verbatim {
namespace {

// Frames of a request, in RFC 27's order.
enum RequestFrame : std::size_t {
  kVersion,
  kRequestId,
  kDomain,
  kAddress,
  kIdentity,
  kMechanism,
  kCredentials,
};

constexpr std::size_t kCurveKeyBytes = 32;

std::string BinaryKey(const std::string& z85) {
  std::array<std::uint8_t, kCurveKeyBytes> bytes{};
  zmq_z85_decode(bytes.data(), z85.c_str());
  return {bytes.begin(), bytes.end()};
}

/// A whole number from 0 to below `ranks`, or -1.
int ParseRank(const std::string& text, int ranks) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && rank >= 0 && rank < ranks ? rank : -1;
}

}  // namespace

ZapHandler::ZapHandler(zmq::context_t& context, const RunKey& key, int rank, int ranks,
                       bool encrypt, OnDenied on_denied)
    : socket_(context, zmq::socket_type::rep),
      encrypt_(encrypt),
      expected_(static_cast<std::size_t>(ranks)),
      on_denied_(std::move(on_denied)) {
  for (int from = 0; from < ranks; ++from) {
    if (from == rank) continue;
    expected_[static_cast<std::size_t>(from)] =
        encrypt ? BinaryKey(key.CurveKeysOf(from).public_key) : key.Password(from, rank);
  }
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

ZapHandler::Verdict ZapHandler::JudgePassword(const std::string& name,
                                              const std::string& password) const {
  const int rank = ParseRank(name, static_cast<int>(expected_.size()));
  if (rank < 0) return {-1, "it is no rank of this run"};
  const std::string& expected = expected_[static_cast<std::size_t>(rank)];
  if (expected.empty() || !IsEqualSecret(password, expected)) {
    return {-1, fmt::format("its password as rank {} is wrong", rank)};
  }
  return {rank, ""};
}

ZapHandler::Verdict ZapHandler::JudgeKey(const std::string& public_key) const {
  for (std::size_t rank = 0; rank < expected_.size(); ++rank) {
    if (!expected_[rank].empty() && public_key == expected_[rank]) {
      return {static_cast<int>(rank), ""};
    }
  }
  return {-1, "its key is none of this run's"};
}

ZapHandler::Verdict ZapHandler::Judge(const std::vector<std::string>& request) const {
  const std::string& mechanism = request[kMechanism];
  if (encrypt_ && mechanism == "CURVE" && request.size() == kCredentials + 1) {
    return JudgeKey(request[kCredentials]);
  }
  if (!encrypt_ && mechanism == "PLAIN" && request.size() == kCredentials + 2) {
    return JudgePassword(request[kCredentials], request[kCredentials + 1]);
  }
  return {-1, "it offers nothing to know it by"};
}

void ZapHandler::Reply(const std::vector<std::string>& request) {
  const bool is_request = request.size() > kMechanism && request[kVersion] == "1.0";
  const Verdict verdict = is_request ? Judge(request) : Verdict{-1, "it cannot be asked who it is"};
  if (verdict.rank < 0) on_denied_(is_request ? request[kAddress] : "somebody", verdict.why);
  const std::string reply[] = {
      "1.0",
      is_request ? request[kRequestId] : "",
      verdict.rank < 0 ? "400" : "200",
      verdict.rank < 0 ? "denied" : "",
      verdict.rank < 0 ? "" : std::to_string(verdict.rank),
  };
  for (const std::string& frame : reply) {
    socket_.send(zmq::buffer(frame), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
  }
  socket_.send(zmq::buffer("", 0), zmq::send_flags::dontwait);  // no metadata
}

void ZapHandler::Answer() {
  while (true) {
    std::vector<std::string> request;
    zmq::message_t frame;
    do {
      if (!socket_.recv(frame, zmq::recv_flags::dontwait)) return;
      request.push_back(frame.to_string());
    } while (frame.more());
    Reply(request);
  }
}

}  // namespace verbatim
