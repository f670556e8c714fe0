// Canonical encoding: the little-endian byte strings that digests are taken over.
// Every use of it is stated in docs/format.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim {

/// Appends fixed-width little-endian fields to a growing byte string.
class Encoder {
 public:
  Encoder& U8(std::uint8_t value) { return Fixed(value, 1); }
  Encoder& U32(std::uint32_t value) { return Fixed(value, 4); }
  Encoder& U64(std::uint64_t value) { return Fixed(value, 8); }
  Encoder& I64(std::int64_t value) { return Fixed(static_cast<std::uint64_t>(value), 8); }
  /// Raw bytes, without a length.
  Encoder& Bytes(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  /// A u32 length and then the bytes.
  Encoder& String(std::string_view text) {
    U32(static_cast<std::uint32_t>(text.size()));
    return Bytes(text.data(), text.size());
  }

  /// Makes room for that many bytes in all.
  void Reserve(std::size_t size) { bytes_.reserve(size); }

  const std::string& bytes() const { return bytes_; }

 private:
  Encoder& Fixed(std::uint64_t value, int width) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
    return Bytes(bytes, static_cast<std::size_t>(width));
  }

  std::string bytes_;
};

}  // namespace verbatim
