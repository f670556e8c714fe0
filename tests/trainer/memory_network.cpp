#include "tests/trainer/memory_network.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace verbatim {

/// One rank's end.
class MemoryNetwork : public Network {
 public:
  MemoryNetwork(MemoryNetworks& all, int rank) : all_(all), rank_(rank) {}
  ~MemoryNetwork() override { Close(0); }

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(all_.inboxes_.size()); }
  PeerName NameOf(int rank) const override {
    return {rank, "host" + std::to_string(rank), 100 + rank};
  }

  void Start(NetworkEvents events) override {
    MemoryNetworks::Inbox& inbox = Own();
    inbox.events = std::move(events);
    inbox.thread = std::thread([this, &inbox] { all_.Deliver(inbox); });
  }

  void Send(int to, Message message) override {
    VERBATIM_CHECK(to != rank_ && to >= 0 && to < ranks());
    all_.Push(rank_, to, std::move(message));
  }

  void ExpectLeaving() override {
    const std::lock_guard lock(Own().mutex);
    Own().expects_leaving = true;
  }

  void Close(std::int64_t) override {
    MemoryNetworks::Inbox& inbox = Own();
    {
      const std::lock_guard lock(inbox.mutex);
      if (std::exchange(inbox.is_closed, true)) return;
      inbox.changed.notify_all();
    }
    if (inbox.thread.joinable()) inbox.thread.join();
    all_.Lose(rank_);
  }

  NetworkTraffic Traffic() const override { return {}; }

 private:
  MemoryNetworks::Inbox& Own() const { return *all_.inboxes_[rank_]; }

  MemoryNetworks& all_;
  const int rank_;
};

MemoryNetworks::MemoryNetworks(int ranks, std::uint32_t seed, SendFilter filter)
    : filter_(std::move(filter)), gone_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    inboxes_.push_back(std::make_unique<Inbox>());
    inboxes_.back()->random.seed(seed + static_cast<std::uint32_t>(rank));
  }
}

std::unique_ptr<Network> MemoryNetworks::Connect(int rank) {
  return std::make_unique<MemoryNetwork>(*this, rank);
}

void MemoryNetworks::Push(int from, int to, Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_[from]) return;
  }
  const Fate fate = filter_ ? filter_(from, to, message) : Fate::kArrives;
  if (fate == Fate::kSenderLost) Lose(from);
  if (fate != Fate::kArrives) return;
  Inbox& inbox = *inboxes_[to];
  const std::lock_guard lock(inbox.mutex);
  inbox.messages[from].push_back(std::move(message));
  inbox.changed.notify_all();
}

void MemoryNetworks::Lose(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_[rank]) return;
    gone_[rank] = true;
  }
  for (int to = 0; to < static_cast<int>(inboxes_.size()); ++to) {
    if (to == rank) continue;
    Inbox& inbox = *inboxes_[to];
    const std::lock_guard lock(inbox.mutex);
    inbox.lost.push_back(rank);
    inbox.changed.notify_all();
  }
}

void MemoryNetworks::Deliver(Inbox& inbox) {
  const int own = static_cast<int>(
      std::ranges::find_if(inboxes_, [&](const auto& other) { return other.get() == &inbox; }) -
      inboxes_.begin());
  const auto& network = MemoryNetwork(*this, own);
  std::unique_lock lock(inbox.mutex);
  while (true) {
    std::vector<int> senders;
    inbox.changed.wait(lock, [&] {
      senders.clear();
      for (const auto& [from, queue] : inbox.messages) {
        if (!queue.empty()) senders.push_back(from);
      }
      return inbox.is_closed || !senders.empty() || !inbox.lost.empty();
    });
    if (inbox.is_closed) return;
    if (senders.empty()) {  // what was sent before a loss comes before it
      const int lost = inbox.lost.back();
      inbox.lost.pop_back();
      if (inbox.expects_leaving) continue;
      lock.unlock();
      inbox.events.on_lost(network.NameOf(lost), "broke its connection");
      lock.lock();
      continue;
    }
    const int from = senders[inbox.random() % senders.size()];
    Message message = std::move(inbox.messages[from].front());
    inbox.messages[from].pop_front();
    lock.unlock();
    inbox.events.on_message(from, std::move(message));
    lock.lock();
  }
}

}  // namespace verbatim
