// A 128-bit digest as a value: XXH3-128 in its canonical (big-endian) byte order, so that the hex
// form equals what `xxhsum -H2` prints. How digests are computed: recorder/digest.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Digest&) const = default;
};

/// 32 lower-case hexadecimal digits.
std::string ToHex(const Digest& digest);
/// The first 8 hexadecimal digits, for people.
std::string ToShortHex(const Digest& digest);
/// Inverse of ToHex; nothing where `hex` is not 32 hexadecimal digits.
std::optional<Digest> DigestFromHex(std::string_view hex);

}  // namespace verbatim
