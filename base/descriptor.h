// An open file or socket that is closed at the end of its scope.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace verbatim {

/// Owns what open, socket or accept returned. Not thread-safe.
class Descriptor {
 public:
  /// Negative: none.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const { return number_; }
  /// Gives it away, unclosed.
  int Release() { return std::exchange(number_, -1); }
  /// For those who must know whether what was written has arrived: zero or an errno.
  int Close() { return close(Release()) == 0 ? 0 : errno; }

 private:
  int number_;
};

}  // namespace verbatim
