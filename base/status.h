// How an expected failure travels: as a returned Status or Result<T>.
//
// Three kinds of error exist (docs/architecture.md, "Errors"): an expected failure is returned as
// one of these; what a library throws is caught once at its boundary and becomes one of these; a
// programmer's mistake is a CHECK (base/check.h).
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace verbatim {

/// What kind of failure it was. Each maps to one exit code of the command line.
enum class ErrorKind {
  kUsage,     ///< The caller asked for something that makes no sense (exit 2).
  kBadInput,  ///< A file is malformed, damaged or of an unknown version (exit 3).
  kFailed,    ///< The run or the machine failed: disk, device, peer, NaN (exit 4).
};

/// An expected failure. `message` says what is wrong and where, `hint` what to do next (or empty).
struct Error {
  ErrorKind kind;
  std::string message;
  std::string hint;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> UsageError(std::string message, std::string hint = "") {
  return tl::unexpected(Error{ErrorKind::kUsage, std::move(message), std::move(hint)});
}
inline tl::unexpected<Error> BadInput(std::string message, std::string hint = "") {
  return tl::unexpected(Error{ErrorKind::kBadInput, std::move(message), std::move(hint)});
}
inline tl::unexpected<Error> Failed(std::string message, std::string hint = "") {
  return tl::unexpected(Error{ErrorKind::kFailed, std::move(message), std::move(hint)});
}

/// Exit code that the command line documents for this kind of failure.
constexpr int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kBadInput:
      return 3;
    case ErrorKind::kFailed:
      return 4;
  }
  return 4;
}

}  // namespace verbatim

/// Returns from the enclosing function with the error of a Status or Result expression.
#define RETURN_IF_ERROR(expression)                                  \
  do {                                                               \
    if (auto status_or_result_ = (expression); !status_or_result_) { \
      return tl::unexpected(std::move(status_or_result_).error());   \
    }                                                                \
  } while (false)

#define VERBATIM_CONCAT_(a, b) a##b
#define VERBATIM_CONCAT(a, b) VERBATIM_CONCAT_(a, b)
/// `ASSIGN_OR_RETURN(auto x, F());` declares x from a Result, or returns its error.
#define ASSIGN_OR_RETURN(declaration, expression)                                 \
  auto VERBATIM_CONCAT(result_, __LINE__) = (expression);                         \
  if (!VERBATIM_CONCAT(result_, __LINE__)) {                                      \
    return tl::unexpected(std::move(VERBATIM_CONCAT(result_, __LINE__)).error()); \
  }                                                                               \
  declaration = *std::move(VERBATIM_CONCAT(result_, __LINE__))
