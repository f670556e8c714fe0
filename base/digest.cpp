#include "base/digest.h"

namespace verbatim {
namespace {

std::optional<std::uint8_t> HexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::string ToHex(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.bytes.size());
  for (std::uint8_t byte : digest.bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::string ToShortHex(const Digest& digest) {
  return ToHex(digest).substr(0, 8);
}

std::optional<Digest> DigestFromHex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const auto high = HexValue(hex[2 * i]);
    const auto low = HexValue(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return digest;
}

}  // namespace verbatim
