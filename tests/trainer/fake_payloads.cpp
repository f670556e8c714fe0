#include "tests/trainer/fake_payloads.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/check.h"

namespace verbatim {
namespace {

std::string InvitationOf(int from, int to) {
  return "fake channels from " + std::to_string(from) + " to " + std::to_string(to);
}

}  // namespace

/// One rank's.
class FakePayloads::End : public DevicePayloads {
 public:
  End(FakePayloads& all, const PayloadEnds& ends)
      : all_(all),
        rank_(ends.rank),
        channels_(ChannelsAt(ends.rank, ends.ranks, all.ranks_with_layer_channels_max_)) {
    VERBATIM_CHECK(ends.ranks == all.ranks_);
  }
  ~End() override { Abort(); }

  bool Has(const PayloadChannel& channel) const override {
    return std::ranges::find(channels_, channel) != channels_.end();
  }

  std::string Invite(int to) override { return InvitationOf(rank_, to); }

  Status Open(std::span<const std::string> invitations) override {
    for (int from = 0; from < all_.ranks_; ++from) {
      VERBATIM_CHECK(from == rank_ ||
                     invitations[static_cast<std::size_t>(from)] == InvitationOf(from, rank_));
    }
    const std::lock_guard lock(all_.mutex_);
    VERBATIM_CHECK(all_.opened_.insert(rank_).second, "rank {} opens twice", rank_);
    return {};
  }

  Result<bool> Poll() override {
    const std::lock_guard lock(all_.mutex_);
    if (all_.aborted_.contains(rank_)) return false;
    if (const auto broken = all_.broken_.find(rank_); broken != all_.broken_.end()) {
      return Failed(broken->second);
    }
    return std::ssize(all_.opened_) == all_.ranks_;
  }

  void Send(const PayloadChannel& channel, std::vector<HandedTensor> tensors) override {
    VERBATIM_CHECK(channel.from == rank_ && Has(channel), "{}", Describe(channel));
    all_.Send(channel, std::move(tensors));
  }

  ReceivedPayload Receive(const PayloadChannel& channel,
                          std::span<const TensorLayout> layouts) override {
    VERBATIM_CHECK(channel.to == rank_ && Has(channel), "{}", Describe(channel));
    return all_.Receive(channel, layouts);
  }

  void Abort() override { all_.Abort(rank_); }

 private:
  FakePayloads& all_;
  const int rank_;
  const std::vector<PayloadChannel> channels_;
};

FakePayloads::FakePayloads(FakeDevice& device, int ranks, std::uint32_t seed,
                           int ranks_with_layer_channels_max)
    : device_(device),
      ranks_(ranks),
      ranks_with_layer_channels_max_(ranks_with_layer_channels_max),
      random_(seed),
      thread_([this] { Execute(); }) {}

FakePayloads::~FakePayloads() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

OpenPayloads FakePayloads::Opener() {
  return [this](const PayloadEnds& ends) { return std::make_unique<End>(*this, ends); };
}

void FakePayloads::Kill(int rank) {
  const std::lock_guard lock(mutex_);
  gone_.insert(rank);
}

void FakePayloads::Break(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  broken_.emplace(rank, why);
}

std::int64_t FakePayloads::transfers(PayloadKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto count = executed_.find(kind);
  return count == executed_.end() ? 0 : count->second;
}

std::int64_t FakePayloads::abandoned() const {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

void FakePayloads::Send(const PayloadChannel& channel, std::vector<HandedTensor> tensors) {
  const std::lock_guard lock(mutex_);
  VERBATIM_CHECK(std::ssize(opened_) == ranks_, "{} is not open", Describe(channel));
  transfers_[channel].push_back({std::move(tensors), {}, nullptr});
  changed_.notify_all();
}

ReceivedPayload FakePayloads::Receive(const PayloadChannel& channel,
                                      std::span<const TensorLayout> layouts) {
  const std::lock_guard lock(mutex_);
  if (aborted_.contains(channel.to)) throw std::runtime_error("the run has ended");
  std::deque<Transfer>& queue = transfers_[channel];
  const auto next = std::ranges::find(queue, nullptr, &Transfer::arrived);
  VERBATIM_CHECK(next != queue.end(), "{}: announced before it was sent", Describe(channel));
  VERBATIM_CHECK(next->sent.size() == layouts.size(), "{}", Describe(channel));
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    VERBATIM_CHECK(LayoutOf(next->sent[i].tensor) == layouts[i], "{}", Describe(channel));
    at::Tensor memory = AllocateAlike(layouts[i], at::kCPU);
    ElementsOf(memory).fill_(std::numeric_limits<float>::quiet_NaN());
    next->memory.push_back(std::move(memory));
    marks.push_back(next->sent[i].ready);
  }
  next->arrived = device_.Hold(marks);
  changed_.notify_all();
  return {next->memory, next->arrived};
}

void FakePayloads::Abort(int rank) {
  const std::lock_guard lock(mutex_);
  if (!aborted_.insert(rank).second) return;
  gone_.insert(rank);
  for (auto& [channel, queue] : transfers_) {
    if (channel.to != rank) continue;
    for (const Transfer& transfer : queue) {
      if (!transfer.arrived) continue;
      device_.Reach(transfer.arrived);
      ++abandoned_;
    }
    queue.clear();
  }
}

std::vector<PayloadChannel> FakePayloads::Ready(bool& has_others) const {
  std::vector<PayloadChannel> ready;
  for (const auto& [channel, queue] : transfers_) {
    if (queue.empty() || !queue.front().arrived || IsGone(channel)) continue;
    const bool is_computed = std::ranges::all_of(queue.front().sent, [&](const HandedTensor& sent) {
      return device_.IsReached(sent.ready);
    });
    is_computed ? ready.push_back(channel) : void(has_others = true);
  }
  return ready;
}

void FakePayloads::Execute() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    bool has_others = false;
    const std::vector<PayloadChannel> ready = Ready(has_others);
    if (ready.empty() && !has_others) {
      changed_.wait(lock);
      continue;
    }
    if (ready.empty() || random_() % 4 != 0) {  // later
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    const PayloadChannel channel = ready[random_() % ready.size()];
    const Transfer transfer = std::move(transfers_[channel].front());
    transfers_[channel].pop_front();
    for (std::size_t i = 0; i < transfer.sent.size(); ++i) {
      const at::Tensor from = ElementsOf(transfer.sent[i].tensor);
      const at::Tensor to = ElementsOf(transfer.memory[i]);
      if (from.numel() > 0)
        std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    }
    ++executed_[channel.kind];
    device_.Reach(transfer.arrived);
  }
}

}  // namespace verbatim
