#include "trainer/ranks/zeromq_network.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "base/check.h"
#include "trainer/ranks/alarm.h"
#include "trainer/ranks/inbound.h"
#include "trainer/ranks/listening.h"
#include "trainer/ranks/outbound.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kMessageBytesMax = std::int64_t{4} << 30;
// Messages taken in a row before anything else is looked after.
constexpr int kMessagesPerTurn = 256;
// For how long a rank that cannot be reached while ranks join may yet turn out to have said why.
constexpr milliseconds kJoinGrace{1000};

/// One other rank.
struct Peer {
  RankAddress address;
  std::unique_ptr<Outbound> out;
  std::uint64_t due = 0;    ///< sequence number of its next message
  bool has_closed = false;  ///< its connection to here
  std::optional<Clock::time_point> broken_since;
  Clock::time_point heard{};  ///< Listening::Heard
  bool is_lost = false;
  bool has_heard_all = false;  ///< what this rank, which leaves, has sent

  bool has_joined() const { return due > 0 && out->is_connected(); }
  bool may_yet_hear() const {
    return out && out->broken().empty() && !has_closed && !has_heard_all;
  }
};

std::string Seconds(std::int64_t ms) {
  return fmt::format("{:g} s", static_cast<double>(ms) / 1000);
}

/// The network thread takes no signals: they are the program's.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// One thread owns all sockets, from Join to Close. Sending and receiving have contexts of their
/// own, and so each a thread of ZeroMQ.
class ZeroMqNetwork final : public Network {
 public:
  ZeroMqNetwork(const ZeroMqOptions& options, const RunKey& key, const std::string& address)
      : options_(options), key_(key), log_(options.on_refused), listening_(PeerTimeout(), Tick()) {
    inbound_.emplace(receiving_, options_, key_, address, log_);
  }
  ~ZeroMqNetwork() override { Close(0); }

  const std::string& endpoint() const { return inbound_->endpoint(); }
  Status Join(std::vector<RankAddress> ranks);

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }
  PeerName NameOf(int rank) const override {
    return peers_.at(static_cast<std::size_t>(rank)).address.name;
  }
  void Start(NetworkEvents events) override;
  void Send(int to, Message message) override;
  void ExpectLeaving() override { expects_leaving_ = true; }
  void Close(std::int64_t linger_ms) override;
  NetworkTraffic Traffic() const override { return {messages_sent_, bytes_sent_}; }

 private:
  using Event = std::function<void(const NetworkEvents&)>;

  milliseconds AliveInterval() const { return milliseconds(options_.alive_interval_ms); }
  milliseconds PeerTimeout() const { return milliseconds(options_.peer_timeout_ms); }
  /// How often peers are looked at.
  milliseconds Tick() const { return std::min(AliveInterval(), PeerTimeout() / 10); }

  bool IsClosing();
  void Run();
  void LoseAll(const std::string& why);
  void Connect();
  void Turn();
  milliseconds Wait() const;
  void Poll();
  bool Receive();
  void Take(Inbound::Received received);
  void SendQueued();
  void SendOne(int to, Message message);
  void SendAlive(Clock::time_point now);
  milliseconds LastWords() const { return is_joined_ ? PeerTimeout() : kJoinGrace; }
  void CheckPeers(Clock::time_point now, bool is_drained);
  void CheckPeer(Peer& peer, Clock::time_point now, bool is_drained);
  void CheckJoin(Clock::time_point now);
  void FinishJoin(Status status);
  void Lose(Peer& peer, std::string why);
  void Emit(Event event);
  void EmitEarly();
  void Leave();
  void CloseSockets();

  template <typename Function>
  void ForPeers(Function function) {
    for (Peer& peer : peers_) {
      if (peer.address.name.rank != options_.rank && !peer.is_lost) function(peer);
    }
  }

  const ZeroMqOptions options_;
  const RunKey key_;
  std::atomic<bool> expects_leaving_ = false;
  std::atomic<std::int64_t> messages_sent_ = 0;
  std::atomic<std::int64_t> bytes_sent_ = 0;
  Alarm alarm_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable has_joined_;
  std::optional<Status> joined_;
  std::deque<std::pair<int, Message>> queue_;
  std::optional<NetworkEvents> events_;  ///< set once; then read by the thread alone
  std::optional<std::int64_t> closing_;  ///< set once: for how long it lingers

  // The thread's own, while there is one.
  RefusalLog log_;
  zmq::context_t receiving_;
  zmq::context_t sending_;
  std::optional<Inbound> inbound_;
  std::vector<Peer> peers_;  ///< by rank
  std::deque<Event> early_;  ///< before Start
  Clock::time_point join_until_{};
  Clock::time_point next_alive_{};
  Listening listening_;
  bool is_joined_ = false;
  bool is_started_ = false;
  bool is_leaving_ = false;
};

Status ZeroMqNetwork::Join(std::vector<RankAddress> ranks) {
  VERBATIM_CHECK(std::ssize(ranks) == options_.ranks && !thread_.joinable());
  for (RankAddress& address : ranks) {
    VERBATIM_CHECK(address.name.rank == std::ssize(peers_));
    peers_.emplace_back().address = std::move(address);
  }
  {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { Run(); });
  }
  std::unique_lock lock(mutex_);
  has_joined_.wait(lock, [this] { return joined_.has_value(); });
  return *joined_;
}

void ZeroMqNetwork::Start(NetworkEvents events) {
  const std::lock_guard lock(mutex_);
  VERBATIM_CHECK(!events_.has_value(), "started twice");
  events_ = std::move(events);
  alarm_.Ring();
}

void ZeroMqNetwork::Send(int to, Message message) {
  VERBATIM_CHECK(to != options_.rank && to >= 0 && to < options_.ranks, "to rank {}", to);
  const std::lock_guard lock(mutex_);
  queue_.emplace_back(to, std::move(message));
  alarm_.Ring();
}

void ZeroMqNetwork::Close(std::int64_t linger_ms) {
  VERBATIM_CHECK(thread_.get_id() != std::this_thread::get_id(), "closed from inside an event");
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = linger_ms;
    alarm_.Ring();
  }
  thread_.join();
}

bool ZeroMqNetwork::IsClosing() {
  const std::lock_guard lock(mutex_);
  return closing_.has_value();
}

void ZeroMqNetwork::Run() {
  try {
    Connect();
    while (!IsClosing()) Turn();
    Leave();
    CloseSockets();
  } catch (const zmq::error_t& error) {
    FinishJoin(Failed(fmt::format("the network between the ranks failed: {}", error.what())));
    LoseAll(fmt::format("is out of reach: ZeroMQ failed here: {}", error.what()));
  }
}

/// Until Close: the losses have to be told.
void ZeroMqNetwork::LoseAll(const std::string& why) {
  ForPeers([&](Peer& peer) { Lose(peer, why); });
  while (!IsClosing()) {
    EmitEarly();
    alarm_.Wait();
  }
}

void ZeroMqNetwork::Connect() {
  const auto now = Clock::now();
  join_until_ = now + milliseconds(options_.join_timeout_ms);
  ForPeers([&](Peer& peer) {
    peer.out = std::make_unique<Outbound>(sending_, options_, key_, peer.address);
    peer.out->Send({.kind = MessageKind::kHello});
  });
  CheckJoin(now);
}

void ZeroMqNetwork::Turn() {
  Poll();
  EmitEarly();
  for (const int rank : inbound_->Watch())
    peers_.at(static_cast<std::size_t>(rank)).has_closed = true;
  ForPeers([](Peer& peer) { peer.out->Watch(); });
  SendQueued();
  const bool is_drained = Receive();
  const auto now = Clock::now();
  listening_.Listened(now);
  CheckPeers(now, is_drained);
  CheckJoin(now);
  SendAlive(now);
}

/// Until something has to be done, at the latest.
milliseconds ZeroMqNetwork::Wait() const {
  if (inbound_->has_closed()) return milliseconds(0);
  const auto now = Clock::now();
  auto until = std::min(next_alive_, now + Tick());
  if (!is_joined_) until = std::min(until, join_until_);
  for (const Peer& peer : peers_) {
    if (peer.broken_since && !peer.is_lost)
      until = std::min(until, *peer.broken_since + LastWords());
  }
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until - now));
}

void ZeroMqNetwork::Poll() {
  std::vector<zmq::pollitem_t> items = {{nullptr, alarm_.file(), ZMQ_POLLIN, 0}};
  for (zmq::socket_t* socket : inbound_->sockets()) {
    items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
  }
  ForPeers([&](Peer& peer) { items.push_back({peer.out->monitor().handle(), 0, ZMQ_POLLIN, 0}); });
  zmq::poll(items, Wait());
  if (items.front().revents != 0) alarm_.Silence();
}

/// True: every message that has arrived is taken.
bool ZeroMqNetwork::Receive() {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    auto received = inbound_->Next();
    if (!received) return true;
    Take(*std::move(received));
  }
  return false;
}

void ZeroMqNetwork::Take(Inbound::Received received) {
  Peer& peer = peers_.at(static_cast<std::size_t>(received.from));
  if (peer.is_lost) return;
  peer.heard = listening_.Heard(Clock::now());
  if (received.bytes > static_cast<std::size_t>(options_.message_bytes_max)) {
    return Lose(peer, fmt::format("sent a message of {} bytes, and {} are allowed", received.bytes,
                                  options_.message_bytes_max));
  }
  if (!received.message) return Lose(peer, "sent " + received.message.error().message);
  DecodedMessage& decoded = *received.message;
  if (decoded.message.kind == MessageKind::kAlive) return;
  if (decoded.sequence != peer.due ||
      (peer.due == 0) != (decoded.message.kind == MessageKind::kHello)) {
    return Lose(peer, fmt::format("sent message {} where {} was due", decoded.sequence, peer.due));
  }
  if (peer.due++ == 0) return;
  if (decoded.message.kind == MessageKind::kLeaving) {
    peer.out->Send({.kind = MessageKind::kHeardAll});
    return;
  }
  if (decoded.message.kind == MessageKind::kHeardAll) {
    peer.has_heard_all = true;
    return;
  }
  auto message = std::make_shared<Message>(std::move(decoded.message));
  Emit([from = received.from, message](const NetworkEvents& events) {
    events.on_message(from, std::move(*message));
  });
}

void ZeroMqNetwork::SendQueued() {
  std::deque<std::pair<int, Message>> queue;
  {
    const std::lock_guard lock(mutex_);
    queue.swap(queue_);
  }
  for (auto& [to, message] : queue) SendOne(to, std::move(message));
}

void ZeroMqNetwork::SendOne(int to, Message message) {
  Peer& peer = peers_.at(static_cast<std::size_t>(to));
  if (peer.is_lost) return;
  const std::size_t bytes = PayloadBytes(message);
  if (bytes > static_cast<std::size_t>(options_.message_bytes_max)) {
    return Lose(peer, fmt::format("cannot be sent a message of {} bytes: {} are allowed", bytes,
                                  options_.message_bytes_max));
  }
  peer.out->Send(std::move(message));
  ++messages_sent_;
  bytes_sent_ += static_cast<std::int64_t>(bytes);
}

void ZeroMqNetwork::SendAlive(Clock::time_point now) {
  if (now < next_alive_) return;
  ForPeers([](Peer& peer) { peer.out->SendAlive(); });
  next_alive_ = now + AliveInterval();
}

void ZeroMqNetwork::CheckPeers(Clock::time_point now, bool is_drained) {
  ForPeers([&](Peer& peer) { CheckPeer(peer, now, is_drained); });
}

// A rank that ends takes both connections with it, and what it sent before arrives before its own
// one closes, however slowly: until then a broken connection to it proves nothing.
void ZeroMqNetwork::CheckPeer(Peer& peer, Clock::time_point now, bool is_drained) {
  const bool is_broken = !peer.out->broken().empty();
  if (is_broken && !peer.broken_since) peer.broken_since = now;
  if (is_drained && peer.has_closed) return Lose(peer, "closed its connection");
  if (is_drained && is_broken && now >= *peer.broken_since + LastWords()) {
    return Lose(peer, peer.out->broken());
  }
  if (is_joined_ && listening_.IsGone(peer.heard)) {
    Lose(peer, "was not heard from for " + Seconds(options_.peer_timeout_ms));
  }
}

void ZeroMqNetwork::CheckJoin(Clock::time_point now) {
  if (is_joined_) return;
  std::string missing;
  ForPeers([&](Peer& peer) {
    if (!peer.has_joined()) missing += (missing.empty() ? "" : ", ") + Describe(peer.address.name);
  });
  if (missing.empty()) {
    is_joined_ = true;
    ForPeers([&](Peer& peer) { peer.heard = listening_.Heard(now); });
    return FinishJoin({});
  }
  if (now < join_until_) return;
  FinishJoin(
      Failed(fmt::format("not connected within {}: {}", Seconds(options_.join_timeout_ms), missing),
             "Look at what those ranks say themselves. If they run, a firewall may be in "
             "the way: --interface NAME chooses another network."));
}

/// The first outcome counts.
void ZeroMqNetwork::FinishJoin(Status status) {
  const std::lock_guard lock(mutex_);
  if (!joined_) joined_ = std::move(status);
  has_joined_.notify_all();
}

void ZeroMqNetwork::Lose(Peer& peer, std::string why) {
  peer.is_lost = true;
  peer.out.reset();
  if (expects_leaving_) return;
  if (!is_joined_) {
    FinishJoin(Failed(Describe(peer.address.name) + " " + why,
                      "Look at what that rank says itself; --interface NAME chooses another "
                      "network."));
  }
  Emit([name = peer.address.name, why](const NetworkEvents& events) { events.on_lost(name, why); });
}

void ZeroMqNetwork::Emit(Event event) {
  if (is_leaving_) return;
  if (is_started_) return event(*events_);
  early_.push_back(std::move(event));
}

void ZeroMqNetwork::EmitEarly() {
  if (is_leaving_) return;
  if (!is_started_) {
    const std::lock_guard lock(mutex_);
    is_started_ = events_.has_value();
  }
  while (is_started_ && !early_.empty()) {
    const Event event = std::move(early_.front());
    early_.pop_front();
    event(*events_);
  }
}

/// Until every rank has said that it has what is queued for it, or is gone. ZeroMQ itself would go
/// on waiting for one whose connection is broken.
void ZeroMqNetwork::Leave() {
  SendQueued();
  if (*closing_ == 0) return;
  is_leaving_ = true;
  ForPeers([](Peer& peer) { peer.out->Send({.kind = MessageKind::kLeaving}); });
  const auto until = Clock::now() + milliseconds(*closing_);
  while (Clock::now() < until && std::ranges::any_of(peers_, &Peer::may_yet_hear)) Turn();
}

/// The others learn that this rank has closed.
void ZeroMqNetwork::CloseSockets() {
  for (Peer& peer : peers_) peer.out.reset();
  sending_.close();
  inbound_.reset();
  receiving_.close();
}

class Listener final : public ZeroMqListener {
 public:
  explicit Listener(std::unique_ptr<ZeroMqNetwork> network)
      : network_(std::move(network)), endpoint_(network_->endpoint()) {}

  const std::string& endpoint() const override { return endpoint_; }
  Result<std::unique_ptr<Network>> Connect(std::vector<RankAddress> ranks) override {
    VERBATIM_CHECK(network_ != nullptr, "connected twice");
    auto network = std::move(network_);
    RETURN_IF_ERROR(network->Join(std::move(ranks)));
    return network;
  }

 private:
  std::unique_ptr<ZeroMqNetwork> network_;
  std::string endpoint_;
};

ZeroMqOptions WithDefaults(ZeroMqOptions options) {
  if (options.alive_interval_ms == 0) {
    options.alive_interval_ms = std::max<std::int64_t>(1, options.peer_timeout_ms / 10);
  }
  if (options.message_bytes_max == 0) options.message_bytes_max = kMessageBytesMax;
  options.handshake_timeout_ms = std::min(options.handshake_timeout_ms, options.join_timeout_ms);
  return options;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Where that is not allowed, the limit stays as it is.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<std::unique_ptr<ZeroMqListener>> ListenZeroMq(const ZeroMqOptions& options,
                                                     const RunKey& key,
                                                     const std::string& address) {
  VERBATIM_CHECK(options.rank >= 0 && options.rank < options.ranks);
  if (options.encrypt && zmq_has("curve") == 0) {
    return Failed("this libzmq cannot encrypt: it was built without CURVE",
                  "Leave out --encrypt, or install a libzmq that has it (Debian's has).");
  }
  RaiseDescriptorLimit();
  try {
    return std::make_unique<Listener>(
        std::make_unique<ZeroMqNetwork>(WithDefaults(options), key, address));
  } catch (const zmq::error_t& error) {
    return Failed(fmt::format("cannot listen on {}: {}", address, error.what()),
                  "--interface NAME chooses another network interface or address of this machine.");
  }
}

}  // namespace verbatim
