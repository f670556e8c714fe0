// Lines about connections that were refused, no more than one a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace verbatim {

/// Not thread-safe.
class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RefusalLog(std::function<void(const std::string&)> write) : write_(std::move(write)) {}

  /// `from`: an address; `why` reads after "refused a connection from …: ".
  void Add(const std::string& from, const std::string& why, Clock::time_point now = Clock::now());

 private:
  std::function<void(const std::string&)> write_;
  std::int64_t unwritten_ = 0;
  Clock::time_point quiet_until_{};
};

}  // namespace verbatim
