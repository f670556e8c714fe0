// Bytes as lower-case hexadecimal digits, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace verbatim {

std::string BytesToHex(std::span<const std::uint8_t> bytes);
/// Fills `bytes`. False where `hex` is not exactly that many bytes in hexadecimal digits of either
/// case.
bool BytesFromHex(std::string_view hex, std::span<std::uint8_t> bytes);

/// As optional value of a type that has an array `bytes`.
template <typename Value>
std::optional<Value> ValueFromHex(std::string_view hex) {
  Value value;
  if (!BytesFromHex(hex, value.bytes)) return std::nullopt;
  return value;
}

}  // namespace verbatim
