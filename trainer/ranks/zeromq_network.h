// The network over ZeroMQ: one listening socket per rank and two connections from every rank to
// every other, all authenticated. What it sends: docs/wire.md.
//
// Connections are never made anew: a message that was lost with one could not be told from one that
// was never sent. Who a message is from is what its connection proved, never what it says itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "trainer/ranks/credentials.h"
#include "trainer/ranks/network.h"

namespace verbatim {

struct ZeroMqOptions {
  int rank = 0;
  int ranks = 1;
  bool encrypt = false;                    ///< CURVE; else passwords, and everything in the clear
  std::int64_t join_timeout_ms = 300'000;  ///< of Connect
  std::int64_t peer_timeout_ms = 30'000;   ///< a rank that is silent for longer is lost
  std::int64_t alive_interval_ms = 0;      ///< 0: a tenth of peer_timeout_ms
  std::int64_t message_bytes_max = 0;      ///< of one message; 0: 4 GiB
  /// A connection that has not proved by then whose it is, is closed; join_timeout_ms where that is
  /// less. So long a rank may take to begin with Connect when others have.
  std::int64_t handshake_timeout_ms = 30'000;
  /// Told about connections that are refused, for people, at most one line a second; from one
  /// thread. May be empty.
  std::function<void(const std::string&)> on_refused;
};

/// Where a rank listens.
struct RankAddress {
  PeerName name;
  std::string endpoint;
};

/// A rank's listening socket: everybody's must exist before anybody connects.
class ZeroMqListener {
 public:
  virtual ~ZeroMqListener() = default;

  /// To be told to the others: "tcp://10.0.0.7:41235", "tcp://[fd00::7]:41235".
  virtual const std::string& endpoint() const = 0;
  /// Connects to all ranks and waits until all have connected to this one. `ranks`: one per rank,
  /// in their order, this one's too. kFailed, naming who is missing, at the end of
  /// join_timeout_ms, or earlier where a rank refuses or cannot be reached. Call once.
  virtual Result<std::unique_ptr<Network>> Connect(std::vector<RankAddress> ranks) = 0;
};

/// Listens on a free port of `address`, an IPv4 or IPv6 address of this machine, and nowhere else.
/// kFailed where it cannot. Lets the process open as many files as its user may: every other rank
/// takes four, and strangers should not take the rest.
Result<std::unique_ptr<ZeroMqListener>> ListenZeroMq(const ZeroMqOptions& options,
                                                     const RunKey& key, const std::string& address);

}  // namespace verbatim
