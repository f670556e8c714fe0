// Digests as Python has them: 16 bytes.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <algorithm>

#include "base/digest.h"
#include "raise.h"

namespace verbatim::python {

inline nanobind::bytes ToBytes(const Digest& digest) {
  return nanobind::bytes(digest.bytes.data(), digest.bytes.size());
}

inline Digest DigestOf(const nanobind::bytes& value) {
  Digest digest;
  if (value.size() != digest.bytes.size()) {
    Raise(Error{ErrorKind::kUsage, fmt::format("a digest has 16 bytes, not {}", value.size()), ""});
  }
  const auto* bytes = static_cast<const std::uint8_t*>(value.data());
  std::copy(bytes, bytes + digest.bytes.size(), digest.bytes.begin());
  return digest;
}

}  // namespace verbatim::python
