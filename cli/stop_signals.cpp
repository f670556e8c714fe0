#include "cli/stop_signals.h"

#include <signal.h>

namespace verbatim {
namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void RequestStop(int) {
  stop_requested = true;
}

void Handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_requested = false;
  for (const int signal : {SIGINT, SIGTERM}) {
    Handle(signal, RequestStop, static_cast<int>(SA_RESETHAND | SA_RESTART));
  }
}

StopSignals::~StopSignals() {
  for (const int signal : {SIGINT, SIGTERM}) Handle(signal, SIG_DFL, 0);
}

const std::atomic<bool>& StopSignals::requested() const {
  return stop_requested;
}

}  // namespace verbatim
