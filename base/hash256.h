// A 256-bit cryptographic hash as a value: BLAKE2b-256 (RFC 7693), as `b2sum -l 256` prints it. How
// hashes are computed: store/merkle.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

struct Hash256 {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Hash256&) const = default;
};

/// 64 lower-case hexadecimal digits.
std::string ToHex(const Hash256& hash);
/// The first 8 hexadecimal digits, for people.
std::string ToShortHex(const Hash256& hash);
/// Inverse of ToHex; nothing where `hex` is not 64 hexadecimal digits.
std::optional<Hash256> Hash256FromHex(std::string_view hex);

}  // namespace verbatim
