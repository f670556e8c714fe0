// Where a strided tensor lies in memory, and memory alike.
//
// What is computed on a copy must have the bits that it would have had on the original, so a copy
// has the same strides, and an address with the same remainder by 64 bytes: kernels choose by both.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace verbatim {

struct TensorLayout {
  at::ScalarType type = at::ScalarType::Undefined;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  ///< as many
  std::int64_t offset = 0;            ///< of the first element, from an aligned address

  /// Elements from the first to the last in memory; 0 where it has none. Nothing where that is no
  /// tensor's, or not below `max`.
  std::optional<std::int64_t> Span(std::int64_t max) const;
  /// Of the span, which CHECKs that it has one.
  std::int64_t Bytes() const;
  bool operator==(const TensorLayout&) const = default;
};

inline constexpr std::int64_t kTensorAlignment = 64;      ///< of LibTorch's CPU tensors
inline constexpr std::int64_t kTensorDimensionsMax = 16;  ///< of a tensor in a message

TensorLayout LayoutOf(const at::Tensor& tensor);
/// A tensor of that layout with any values, from the current stream of a GPU.
at::Tensor AllocateAlike(const TensorLayout& layout, at::Device device);
/// The memory from the first element to the last, as one row.
at::Tensor ElementsOf(const at::Tensor& tensor);

/// Appends a layout to a list of numbers.
void AppendLayout(const TensorLayout& layout, std::vector<std::int64_t>& numbers);
/// All layouts of such a list; nothing where it is none, or where one of them is no tensor's.
std::optional<std::vector<TensorLayout>> LayoutsOf(std::span<const std::int64_t> numbers);

}  // namespace verbatim
