// Errors of the C++ side as exceptions of the package.
#pragma once

#include "base/status.h"

namespace verbatim::python {

/// Throws what becomes verbatim.UsageError, BadInputError or FailedError. With the GIL held.
[[noreturn]] void Raise(const Error& error);

inline void RaiseIfError(const Status& status) {
  if (!status) Raise(status.error());
}

/// The value, or its error as an exception.
template <typename T>
T ValueOrRaise(Result<T>&& result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}

}  // namespace verbatim::python
