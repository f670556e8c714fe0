// What wakes a thread that polls.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace verbatim {

/// A counter of the kernel's. Thread-safe.
class Alarm {
 public:
  Alarm() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    VERBATIM_CHECK(file_ >= 0, "no eventfd");
  }
  ~Alarm() { close(file_); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  int file() const { return file_; }
  void Ring() { (void)!eventfd_write(file_, 1); }
  void Wait() {
    pollfd item{file_, POLLIN, 0};
    (void)!poll(&item, 1, -1);
    Silence();
  }
  void Silence() {
    eventfd_t count;
    (void)!eventfd_read(file_, &count);
  }

 private:
  int file_;
};

}  // namespace verbatim
