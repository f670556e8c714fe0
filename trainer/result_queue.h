// What stages compute for the observer, handed out once their devices have computed it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "trainer/device_stream.h"

namespace verbatim {

/// Hands out results in the order in which they are added, each when its mark is reached. Where
/// devices compute behind their host, a thread of its own waits for the marks, so that no stage
/// does; else everything is there when it is added, and is handed out in that call. Any thread.
class ResultQueue {
 public:
  /// `on_failure` is told what handing out threw, on the queue's thread; what follows is dropped.
  ResultQueue(bool is_behind, std::function<void(const std::string&)> on_failure);
  /// Drops what has not been handed out.
  ~ResultQueue();

  bool is_behind() const { return is_behind_; }

  /// `hand_out` is called once; it may be movable only. It may add more.
  template <typename F>
  void Add(Mark ready, F&& hand_out) {
    if (!is_behind_) return hand_out();
    auto shared = std::make_shared<std::decay_t<F>>(std::forward<F>(hand_out));
    Push({std::move(ready), [shared] { (*shared)(); }});
  }

  /// Returns when everything that was added has been handed out. Nothing may be added afterwards.
  void Close();

 private:
  struct Entry {
    Mark ready;
    std::function<void()> hand_out;
  };

  void Push(Entry entry);
  void Serve();
  /// Whether there was one, before the end.
  bool HandOutNext();

  const bool is_behind_;
  const std::function<void(const std::string&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool is_closing_ = false;
  bool has_failed_ = false;
  std::thread thread_;  ///< last, so that it starts when all else stands
};

}  // namespace verbatim
