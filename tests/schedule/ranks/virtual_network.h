// A network and a clock that exist only in a queue of events, so that a run of many ranks is a
// function of a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace verbatim::ranks_test {

/// In whole ticks. Events of one instant happen in the order in which they were planned.
class EventQueue {
 public:
  std::int64_t now() const { return now_; }
  void At(std::int64_t time, std::function<void()> event) {
    events_.push({std::max(time, now_), planned_++, std::move(event)});
  }
  /// False after `limit` events: something goes round in circles.
  bool Run(std::int64_t limit) {
    for (; !events_.empty(); --limit) {
      if (limit == 0) return false;
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      event.happen();
    }
    return true;
  }

 private:
  struct Event {
    std::int64_t time;
    std::int64_t number;
    std::function<void()> happen;
    bool operator<(const Event& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  std::int64_t now_ = 0;
  std::int64_t planned_ = 0;
  std::priority_queue<Event> events_;
};

/// Links between pairs of ranks. Each keeps the order of its packets; between links anything goes:
/// most packets take a few ticks, some a thousand times as many.
template <typename Packet>
class VirtualNetwork {
 public:
  using Receive = std::function<void(int from, int to, Packet packet)>;

  VirtualNetwork(EventQueue& events, std::uint64_t seed, bool keeps_order, Receive receive)
      : events_(events), random_(seed), keeps_order_(keeps_order), receive_(std::move(receive)) {}

  void Send(int from, int to, Packet packet) {
    std::int64_t arrival = events_.now() + Latency();
    std::int64_t& last = last_arrival_[{from, to}];
    if (keeps_order_) arrival = std::max(arrival, last);
    last = std::max(last, arrival);
    events_.At(arrival, [this, from, to, arrival, packet = std::move(packet)]() mutable {
      const auto cut = cut_.find({from, to});
      if (cut != cut_.end() && arrival >= cut->second) return;
      receive_(from, to, std::move(packet));
    });
  }

  /// Of what is under way from `from` to `to`, what would arrive at `time` or later is lost.
  void Cut(int from, int to, std::int64_t time) { cut_[{from, to}] = time; }
  static constexpr std::int64_t kLatencyMax = 20'000;

 private:
  std::int64_t Latency() {
    const std::int64_t few = 1 + static_cast<std::int64_t>(random_() % 20);
    return random_() % 50 == 0 ? few * (kLatencyMax / 20) : few;
  }

  EventQueue& events_;
  std::mt19937_64 random_;
  bool keeps_order_;
  Receive receive_;
  std::map<std::pair<int, int>, std::int64_t> last_arrival_;
  std::map<std::pair<int, int>, std::int64_t> cut_;
};

}  // namespace verbatim::ranks_test
