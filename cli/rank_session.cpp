#include "cli/rank_session.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <net/if.h>

#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "cli/output.h"
#include "cli/version.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/tcp_store.h"
#include "verify/environment_comparison.h"

namespace verbatim {
namespace {

/// For what was sent last, such as why a run failed.
constexpr std::int64_t kLingerMs = 10'000;

/// What has to be alike: threads are part of the task, and instruction sets that a numeric profile
/// does not ask for may differ (CheckProcessor has found the others).
std::vector<EnvironmentRow> FactsToCompare(at::Device device, Numerics numerics) {
  std::vector<EnvironmentRow> facts;
  for (EnvironmentRow& row : DescribeEnvironment(device, /*threads_per_stage=*/1)) {
    if (row.key == "threads_per_stage" || !IsNumericKey(row.key, numerics)) continue;
    if (row.key == "cpu.instruction_sets" && numerics != Numerics::kNative) continue;
    facts.push_back(std::move(row));
  }
  return facts;
}

/// NCCL looks for connections of its own, and is to do so where the network does. Unless its
/// variable says otherwise.
void NameInterface(const RankPlace& place) {
  std::string name = place.network.interface;
  if (name.empty() && place.rank.is_one_host) name = "lo";
  if (if_nametoindex(name.c_str()) == 0) return;  // an address, or not said
  setenv("NCCL_SOCKET_IFNAME", ("=" + name).c_str(), /*overwrite=*/0);
}

void SayRefused(const std::string& what) {
  fmt::print(stderr, "verbatim: {}\n", ForTerminal(what));
}

}  // namespace

/// Remembers whether training has begun on it.
class RankSession::WatchedNetwork : public Network {
 public:
  explicit WatchedNetwork(std::unique_ptr<Network> network) : network_(std::move(network)) {}

  int rank() const override { return network_->rank(); }
  int ranks() const override { return network_->ranks(); }
  PeerName NameOf(int rank) const override { return network_->NameOf(rank); }
  void Start(NetworkEvents events) override {
    is_started_ = true;
    network_->Start(std::move(events));
  }
  void Send(int to, Message message) override { network_->Send(to, std::move(message)); }
  void ExpectLeaving() override { network_->ExpectLeaving(); }
  void Close(std::int64_t linger_ms) override { network_->Close(linger_ms); }
  NetworkTraffic Traffic() const override { return network_->Traffic(); }

  bool is_started() const { return is_started_; }

 private:
  std::unique_ptr<Network> network_;
  bool is_started_ = false;
};

RankSession::RankSession() = default;
RankSession::~RankSession() {
  Leave("");
}

Result<std::string> RankSession::Enter(const RankPlace& place, const std::optional<Error>& failure,
                                       const std::string& job_json) {
  VERBATIM_CHECK(!has_joined_, "joined twice");
  has_joined_ = true;
  ConfigureDeterminism();
  RankFacts facts;
  facts.tool_version = ToolVersion();
  facts.task_json = place.task_json;
  facts.failure = failure;
  const auto devices = ParseDevices(place.device, place.rank.local);
  if (!devices && !failure) facts.failure = devices.error();
  facts.environment = FactsToCompare(devices ? devices->front() : at::kCPU, place.numerics);
  if (place.device == "cuda") NameInterface(place);
  NetworkSetting network = place.network;
  network.on_refused = SayRefused;
  ASSIGN_OR_RETURN(const auto store, OpenTcpStore(place.rank, network));
  ASSIGN_OR_RETURN(Joined joined, Join(place.rank, network, facts, job_json, *store));
  network_ = std::make_unique<WatchedNetwork>(std::move(joined.network));
  return joined.job_json;
}

Status RankSession::Lead(const RankPlace& place, const RankJob& job) {
  RETURN_IF_ERROR(Enter(place, std::nullopt, ToJson(job)));
  return {};
}

Result<std::optional<RankJob>> RankSession::Follow(const RankPlace& place) {
  ASSIGN_OR_RETURN(const std::string job_json, Enter(place, std::nullopt, ""));
  if (job_json.empty()) return std::nullopt;
  return ParseRankJob(job_json);
}

void RankSession::Dismiss(const RankPlace& place, const std::optional<Error>& why) {
  if (has_joined_) return;
  if (place.failure) {
    if (const auto store = OpenTcpStore(place.rank, place.network)) {
      Decline(place.rank, place.network, **store);
    }
    return;
  }
  // What went wrong with it, the other ranks say themselves.
  (void)Enter(place, why, "");
}

Network* RankSession::network() const {
  return network_.get();
}

void RankSession::Leave(const std::string& why) {
  if (!network_) return;
  network_->ExpectLeaving();
  if (!network_->is_started()) {
    // They may have something to say too, and nothing follows from it any more.
    network_->Start(
        {.on_message = [](int, Message) {}, .on_lost = [](const PeerName&, const std::string&) {}});
    const std::string text = fmt::format("{}: {}", Describe(network_->NameOf(network_->rank())),
                                         why.empty() ? "it stopped before the training" : why);
    for (int rank = 0; rank < network_->ranks(); ++rank) {
      if (rank == network_->rank()) continue;
      Message message;
      message.kind = MessageKind::kAbort;
      message.text = text;
      network_->Send(rank, std::move(message));
    }
  }
  network_->Close(kLingerMs);
  network_.reset();
}

}  // namespace verbatim
