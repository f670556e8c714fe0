// Numbers as little-endian bytes at any alignment: what packed columns and digested messages hold.
#pragma once

#include <cstdint>

namespace verbatim {

/// Writes the low `kBytes` bytes of `value`.
template <int kBytes>
inline void PutLittle(char* out, std::uint64_t value) {
  for (int i = 0; i < kBytes; ++i) out[i] = static_cast<char>(value >> (8 * i) & 0xff);
}

/// Reads `kBytes` bytes as an unsigned number.
template <int kBytes>
inline std::uint64_t GetLittle(const char* in) {
  std::uint64_t value = 0;
  for (int i = 0; i < kBytes; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(in[i])} << (8 * i);
  }
  return value;
}

}  // namespace verbatim
