// Element types of tensors. C++17, host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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
  kInt8 = 9,
  kInt16 = 10,
  kUInt16 = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex32 = 14,  ///< real part, imaginary part: two float16
  kComplex64 = 15,
  kComplex128 = 16,
  kFloat8E4M3FN = 17,  ///< names of the 8-bit ones as PyTorch's and ml_dtypes'
  kFloat8E5M2 = 18,
  kFloat8E4M3FNUZ = 19,
  kFloat8E5M2FNUZ = 20,
  kFloat8E8M0FNU = 21,
};

struct DTypeFacts {
  DType dtype;
  const char* name;
  std::size_t element_bytes;
};

/// Every dtype, by value from 1 on; names as PyTorch has them.
inline constexpr DTypeFacts kDTypes[] = {
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kInt64, "int64", 8},
    {DType::kInt32, "int32", 4},
    {DType::kUInt8, "uint8", 1},
    {DType::kBool, "bool", 1},
    {DType::kInt8, "int8", 1},
    {DType::kInt16, "int16", 2},
    {DType::kUInt16, "uint16", 2},
    {DType::kUInt32, "uint32", 4},
    {DType::kUInt64, "uint64", 8},
    {DType::kComplex32, "complex32", 4},
    {DType::kComplex64, "complex64", 8},
    {DType::kComplex128, "complex128", 16},
    {DType::kFloat8E4M3FN, "float8_e4m3fn", 1},
    {DType::kFloat8E5M2, "float8_e5m2", 1},
    {DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1},
    {DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1},
    {DType::kFloat8E8M0FNU, "float8_e8m0fnu", 1},
};

/// Null for a value that is no DType.
constexpr const DTypeFacts* FactsOf(DType dtype) {
  const auto value = static_cast<std::uint32_t>(dtype);
  return value >= 1 && value <= sizeof kDTypes / sizeof *kDTypes ? &kDTypes[value - 1] : nullptr;
}

/// Bytes of one element; 0 for a value that is no DType.
constexpr std::size_t SizeOf(DType dtype) {
  const DTypeFacts* const facts = FactsOf(dtype);
  return facts == nullptr ? 0 : facts->element_bytes;
}

/// "float32"; "" for a value that is no DType.
constexpr const char* DTypeName(DType dtype) {
  const DTypeFacts* const facts = FactsOf(dtype);
  return facts == nullptr ? "" : facts->name;
}

/// Inverse of DTypeName.
inline std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeFacts& facts : kDTypes) {
    if (name == facts.name) return facts.dtype;
  }
  return std::nullopt;
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
