// Ctrl-C as a request: the first SIGINT or SIGTERM sets a flag, the second ends the process.
#pragma once

#include <atomic>

namespace verbatim {

/// Installs the handlers for its lifetime; one at a time per process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// True once a signal has arrived.
  const std::atomic<bool>& requested() const;
};

}  // namespace verbatim
