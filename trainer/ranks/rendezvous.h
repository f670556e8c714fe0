// How the ranks of a run find each other, agree that they are one run, and connect.
//
// Each puts a card into a store that all can reach: who and where it is, which program and which
// numeric environment, what it was told to run. Rank 0 reads all cards, compares them with its own
// and answers once: where everybody is and what to do, or what does not fit. Cards and answer are
// sealed with the run's token, so the store itself need not be trusted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "trainer/ranks/launcher.h"
#include "trainer/ranks/network.h"
#include "trainer/ranks/zeromq_network.h"

namespace verbatim {

/// A key-value store that all ranks of a run reach (c10d's TCPStore; a map in tests).
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status Set(const std::string& key, const std::string& value) = 0;
  virtual Result<bool> Has(const std::string& key) = 0;
  /// Waits until the key is there; kFailed after `timeout_ms`, saying so.
  virtual Result<std::string> Get(const std::string& key, std::int64_t timeout_ms) = 0;
  /// Adds to a counter and returns its new value.
  virtual Result<std::int64_t> Add(const std::string& key, std::int64_t amount) = 0;
};

/// Secrets and addresses, as the command line gives them.
struct NetworkSetting {
  /// An interface's name or an address of this machine; empty: the one that leads to the
  /// rendezvous.
  std::string interface;
  /// Shared by the ranks of the run, 16 bytes or more; empty: only where all ranks are on one host
  /// and listen at the loopback interface (trainer/ranks/shared_token.h).
  std::string token;
  bool encrypt = false;                    ///< CURVE (authenticated encryption) between the ranks
  std::int64_t join_timeout_ms = 300'000;  ///< until all ranks are there
  std::int64_t peer_timeout_ms = 30'000;   ///< a rank that is silent for longer is lost
  std::int64_t message_bytes_max = 0;      ///< of one message; 0: 4 GiB
  /// ZeroMqOptions::on_refused.
  std::function<void(const std::string&)> on_refused;
};

/// What a rank says of itself besides its address.
struct RankFacts {
  std::string tool_version;
  std::vector<EnvironmentRow> environment;  ///< as recorded; "info." rows are not compared
  /// What it was asked to run, as a JSON object: the command, and for `train` effective spec and
  /// layout; of replay, verify and resume rank 0 alone knows the rest.
  std::string task_json;
  /// Why this rank cannot take part. It joins all the same, so that the others hear of it.
  std::optional<Error> failure;
};

/// As ListenZeroMq, or in memory for tests.
using OpenListener = std::function<Result<std::unique_ptr<ZeroMqListener>>(
    const ZeroMqOptions& options, const RunKey& key, const std::string& address)>;

struct Joined {
  std::unique_ptr<Network> network;
  std::string job_json;  ///< what rank 0 gave to Join
};

/// Joins the run and connects to all other ranks. `job_json`: rank 0's, handed to all; ignored
/// elsewhere. Every rank gets an error where any two do not fit: kUsage where they were asked to
/// run different things (naming the first field that differs), kFailed where program or environment
/// differ (naming fact, both values and both ranks), where a rank joined twice, the world sizes
/// differ, a rank did not come in time (naming which), an address cannot be bound or reached; and a
/// rank's own failure, where one has failed. Returns within about twice the join time-out.
Result<Joined> Join(const RankSetting& rank, const NetworkSetting& network, const RankFacts& facts,
                    const std::string& job_json, RendezvousStore& store,
                    const OpenListener& open = ListenZeroMq);

/// Tells the others that this rank, which has no token, does not join. They learn no more.
void Decline(const RankSetting& rank, const NetworkSetting& network, RendezvousStore& store);

}  // namespace verbatim
