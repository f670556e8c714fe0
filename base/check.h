// VERBATIM_CHECK: a programmer's mistake ends the program with its place and context, in release
// too.
#pragma once

#include <fmt/format.h>

#include <string>

namespace verbatim {

/// Prints "CHECK failed: …" to stderr and aborts. Never returns.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& context);

}  // namespace verbatim

/// VERBATIM_CHECK(cond) or VERBATIM_CHECK(cond, "fmt {}", args…).
#define VERBATIM_CHECK(condition, ...)                                                        \
  do {                                                                                        \
    if (!(condition)) [[unlikely]] {                                                          \
      ::verbatim::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                         \
  } while (false)
