// A device that computes behind its host, for tests without one: tensors are the CPU's and have
// their values at once, but marks are reached later, by another thread, and every stream knows what
// it has waited for.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/device_stream.h"

namespace verbatim {

/// By stream, how far it is known to have come (vector clocks: Fidge, 1988; Mattern, 1989).
using StreamClock = std::map<int, std::int64_t>;

class FakeDevice {
 public:
  /// Something enqueued on a stream.
  struct Moment {
    int stream = -1;
    std::int64_t time = 0;
  };

  /// How streams wait for marks. kOnHost: their threads do, so that what they compute after it has
  /// values that somebody else brings; kNever: they forget to.
  enum class Waits { kOnDevice, kOnHost, kNever };

  /// The device outlives its streams and their marks.
  explicit FakeDevice(std::uint32_t seed, Waits waits = Waits::kOnDevice)
      : random_(seed), waits_(waits), thread_([this] { Compute(); }) {}
  ~FakeDevice() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  OpenStream Opener() {
    return [this](at::Device) -> std::unique_ptr<DeviceStream> {
      const std::lock_guard lock(mutex_);
      return std::make_unique<Stream>(*this, streams_++);
    };
  }

  /// What the calling thread enqueues now.
  static Moment Now() { return {current_->id(), current_->clock()[current_->id()] + 1}; }
  /// Whether what the calling thread enqueues now comes after `moment` on the device.
  static bool IsAfter(const Moment& moment) {
    if (moment.stream < 0 || moment.stream == current_->id()) return true;
    return current_->clock()[moment.stream] >= moment.time;
  }

  /// Whether the calling thread's stream has said that it uses the tensor's memory.
  static bool IsUsed(const at::Tensor& tensor) {
    return current_->used_.contains(tensor.storage().unsafeGetStorageImpl());
  }

  /// From now on streams forget to wait for marks of some others. They are numbered as they are
  /// opened. Before any thread uses them; so ForgetUses.
  void ForgetWaits(std::function<bool(int waiting, int marked)> forgets) {
    forgets_ = std::move(forgets);
  }
  /// From now on streams do not ask for the memory that they use to be kept.
  void ForgetUses() { forgets_uses_ = true; }

  std::int64_t marks() const { return marks_; }

  /// A mark of somebody else's, after all of these: it is reached when Reach is called.
  Mark Hold(const std::vector<Mark>& others) {
    StreamClock clock;
    for (const Mark& mark : others) Merge(mark, clock);
    return std::make_shared<FakeMark>(*this, /*by=*/-1, std::move(clock));
  }
  void Reach(const Mark& mark) {
    const std::lock_guard lock(mutex_);
    static_cast<const FakeMark&>(*mark).is_reached = true;
    changed_.notify_all();
  }
  bool IsReached(const Mark& mark) {
    const std::lock_guard lock(mutex_);
    return !mark || static_cast<const FakeMark&>(*mark).is_reached;
  }

 private:
  struct FakeMark : public DeviceMark {
    FakeMark(FakeDevice& owner, int by, StreamClock at)
        : device(owner), stream(by), clock(std::move(at)) {}
    void Synchronize() const override {
      std::unique_lock lock(device.mutex_);
      device.changed_.wait(lock, [this] { return is_reached; });
    }
    FakeDevice& device;
    const int stream;  ///< -1: somebody else's
    const StreamClock clock;
    mutable bool is_reached = false;  ///< guarded by the device's mutex
  };

  class Stream : public DeviceStream {
   public:
    Stream(FakeDevice& device, int id) : device_(device), id_(id) {}

    void Enter() override { current_ = this; }
    bool IsBehind() const override { return true; }
    Mark Record() override {
      ++clock_[id_];
      return device_.Enqueue(std::make_shared<FakeMark>(device_, id_, clock_));
    }
    void WaitFor(const Mark& mark) override {
      if (!mark || device_.waits_ == Waits::kNever) return;
      const int marked = static_cast<const FakeMark&>(*mark).stream;
      if (device_.forgets_ && device_.forgets_(id_, marked)) return;
      Merge(mark, clock_);
      if (device_.waits_ == Waits::kOnHost) mark->Synchronize();
    }
    void Uses(const at::Tensor& tensor) override {
      if (!device_.forgets_uses_) used_.insert(tensor.storage().unsafeGetStorageImpl());
    }
    HandedTensor Give(const at::Tensor& tensor, at::Device) override { return {tensor, Record()}; }
    at::Tensor Bring(const at::Tensor& tensor) override {
      Uses(tensor);
      return tensor;
    }

    int id() const { return id_; }
    StreamClock& clock() { return clock_; }

    std::set<const void*> used_;  ///< storages

   private:
    FakeDevice& device_;
    const int id_;
    StreamClock clock_;
  };

  static void Merge(const Mark& mark, StreamClock& clock) {
    if (!mark) return;
    for (const auto& [stream, time] : static_cast<const FakeMark&>(*mark).clock) {
      std::int64_t& known = clock[stream];
      known = std::max(known, time);
    }
  }

  Mark Enqueue(std::shared_ptr<FakeMark> mark) {
    const std::lock_guard lock(mutex_);
    ++marks_;
    queue_.push_back(mark);
    changed_.notify_all();
    return mark;
  }

  /// Reaches marks in order, several at a time.
  void Compute() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_over_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::uint32_t spins = random_() % 64;
      lock.unlock();
      for (std::uint32_t i = 0; i < spins; ++i) std::this_thread::yield();
      lock.lock();
      for (std::uint32_t left = 1 + random_() % 8; left > 0 && !queue_.empty(); --left) {
        queue_.front()->is_reached = true;
        queue_.pop_front();
      }
      changed_.notify_all();
    }
  }

  inline static thread_local Stream* current_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  const Waits waits_;
  std::function<bool(int, int)> forgets_;
  bool forgets_uses_ = false;
  int streams_ = 0;
  std::int64_t marks_ = 0;
  std::deque<std::shared_ptr<FakeMark>> queue_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace verbatim
