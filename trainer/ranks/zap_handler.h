// Who may connect: the answers of ZeroMQ's authentication protocol (ZAP, RFC 27 of rfc.zeromq.org).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "trainer/ranks/credentials.h"

namespace verbatim {

/// Lets in the other ranks of a run, by password (PLAIN) or key (CURVE), and makes the number of
/// the rank the connection's "User-Id". Belongs to one thread.
class ZapHandler {
 public:
  /// Told the address of whoever was denied, and why.
  using OnDenied = std::function<void(const std::string& address, const std::string& why)>;

  /// Every listening socket of `context` asks it, so it must be there before them.
  ZapHandler(zmq::context_t& context, const RunKey& key, int rank, int ranks, bool encrypt,
             OnDenied on_denied);

  /// Readable where somebody asks.
  zmq::socket_t& socket() { return socket_; }
  /// Answers all who ask: does not wait.
  void Answer();

 private:
  /// The rank that proved itself, or why nobody did.
  struct Verdict {
    int rank = -1;
    std::string why;
  };

  Verdict Judge(const std::vector<std::string>& request) const;
  Verdict JudgePassword(const std::string& name, const std::string& password) const;
  Verdict JudgeKey(const std::string& public_key) const;
  void Reply(const std::vector<std::string>& request);

  zmq::socket_t socket_;
  bool encrypt_;
  std::vector<std::string> expected_;  ///< by rank: passwords or binary public keys; empty: own
  OnDenied on_denied_;
};

}  // namespace verbatim
