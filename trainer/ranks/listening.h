// When a silent rank is one that is gone: times alone, no clock.
#pragma once

#include <chrono>

namespace verbatim {

/// When each rank was last heard, while somebody listened.
class Listening {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The listener comes back after `turn` at the latest, unless it is held up.
  Listening(std::chrono::milliseconds timeout, std::chrono::milliseconds turn)
      : timeout_(timeout), turn_(turn) {}

  /// The listener has taken what has arrived until `now`. Time in which it could not do so (a long
  /// event, a stopped process) is held against nobody: what was sent in it may not be here yet.
  void Listened(Time now) {
    const auto held_up = now - listened_ - 2 * turn_;
    if (listened_ != Time{} && held_up > Time::duration::zero()) excused_ += held_up;
    listened_ = now;
  }
  /// To be kept for a rank that is heard.
  Time Heard(Time now) const { return now - excused_; }
  /// Whether a rank that was last heard then has been silent for too long. After Listened.
  bool IsGone(Time heard) const { return listened_ - excused_ - heard > timeout_; }

 private:
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds turn_;
  Time listened_{};
  Time::duration excused_{};  ///< in all
};

}  // namespace verbatim
