// Element types of tensors. C++17, host and device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim {

/// The values are part of the record's format (docs/format.md, "Digests"): never renumber.
enum class DType : std::uint32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt64 = 5,
  kInt32 = 6,
  kUInt8 = 7,
  kBool = 8,  ///< one byte, 0 or 1
};

/// Bytes of one element; 0 for a value that is no DType.
constexpr std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUInt8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

/// Computes a tensor's bytes into `byte_size`. False, and nothing written, where `dtype` is
/// unknown, a dimension is negative, or the size does not fit 63 bits. A tensor of rank 0 has one
/// element.
inline bool TensorBytes(DType dtype, const std::int64_t* dims, std::size_t rank,
                        std::size_t* byte_size) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  const std::size_t element_bytes = SizeOf(dtype);
  bool is_empty = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return false;
    is_empty = is_empty || dims[i] == 0;
  }
  std::uint64_t bytes = is_empty ? 0 : element_bytes;
  for (std::size_t i = 0; i < rank && !is_empty; ++i) {
    const auto dim = static_cast<std::uint64_t>(dims[i]);
    if (bytes > (kLimit - 1) / dim) return false;
    bytes *= dim;
  }
  if (element_bytes == 0) return false;
  *byte_size = static_cast<std::size_t>(bytes);
  return true;
}

}  // namespace verbatim
