// Reads what base/encoding.h wrote, from bytes that may be anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/little_endian.h"

namespace verbatim {

/// Takes fixed-width little-endian fields from the front of a byte string. Past its end every field
/// reads as zero and every text as empty, and `failed` stays set: ask it once, before any value is
/// used.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t U8() { return static_cast<std::uint8_t>(Fixed<1>()); }
  std::uint32_t U32() { return static_cast<std::uint32_t>(Fixed<4>()); }
  std::uint64_t U64() { return Fixed<8>(); }
  std::int64_t I64() { return static_cast<std::int64_t>(Fixed<8>()); }
  /// Raw bytes, in place.
  std::string_view Bytes(std::size_t size) {
    failed_ = failed_ || size > rest_.size();
    if (failed_) return {};
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  /// A u32 length and then the bytes, in place.
  std::string_view String() { return Bytes(U32()); }

  bool failed() const { return failed_; }
  /// Bytes not yet taken.
  std::size_t left() const { return failed_ ? 0 : rest_.size(); }

 private:
  template <int kBytes>
  std::uint64_t Fixed() {
    const std::string_view bytes = Bytes(kBytes);
    return failed_ ? 0 : GetLittle<kBytes>(bytes.data());
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace verbatim
