#include "trainer/tensor_layout.h"

#include <ATen/ops/empty.h>

#include "base/check.h"
#include "trainer/tensor_dtype.h"

namespace verbatim {
namespace {

/// No tensor of a run has more elements; keeps sums and products of them in 64 bits.
constexpr std::int64_t kElementsMax = std::int64_t{1} << 48;
/// Of a layout in a list: type, dimensions, offset.
constexpr std::size_t kHeadNumbers = 3;

/// The first layout of a list.
std::optional<TensorLayout> FirstLayout(std::span<const std::int64_t> numbers) {
  if (numbers.size() < kHeadNumbers) return std::nullopt;
  const std::int64_t dimensions = numbers[1];
  if (dimensions < 0 || dimensions > kTensorDimensionsMax) return std::nullopt;
  const auto count = static_cast<std::size_t>(dimensions);
  if (numbers.size() < kHeadNumbers + 2 * count) return std::nullopt;
  TensorLayout layout;
  const bool is_type = numbers[0] >= 0 && numbers[0] <= UINT32_MAX;
  if (is_type) layout.type = ToScalarType(static_cast<DType>(numbers[0]));
  layout.offset = numbers[2];
  const auto sizes = numbers.subspan(kHeadNumbers, count);
  const auto strides = numbers.subspan(kHeadNumbers + count, count);
  layout.sizes.assign(sizes.begin(), sizes.end());
  layout.strides.assign(strides.begin(), strides.end());
  if (layout.type == at::ScalarType::Undefined || layout.offset < 0 ||
      layout.offset >= kTensorAlignment || !layout.Span(kElementsMax)) {
    return std::nullopt;
  }
  return layout;
}

}  // namespace

std::optional<std::int64_t> TensorLayout::Span(std::int64_t max) const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return std::nullopt;
    if (sizes[i] == 0) return 0;
    if (strides[i] > 0 && sizes[i] - 1 > (max - last) / strides[i]) return std::nullopt;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

std::int64_t TensorLayout::Bytes() const {
  const std::optional<std::int64_t> span = Span(kElementsMax);
  VERBATIM_CHECK(span.has_value(), "no tensor's layout");
  return *span * static_cast<std::int64_t>(c10::elementSize(type));
}

TensorLayout LayoutOf(const at::Tensor& tensor) {
  TensorLayout layout;
  layout.type = tensor.scalar_type();
  layout.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  layout.strides.assign(tensor.strides().begin(), tensor.strides().end());
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  layout.offset = static_cast<std::int64_t>(address % kTensorAlignment) / tensor.element_size();
  return layout;
}

at::Tensor AllocateAlike(const TensorLayout& layout, at::Device device) {
  const std::optional<std::int64_t> span = layout.Span(kElementsMax);
  VERBATIM_CHECK(span.has_value(), "no tensor's layout");
  const auto options = at::TensorOptions().dtype(layout.type).device(device);
  return at::empty({layout.offset + *span}, options)
      .as_strided(layout.sizes, layout.strides, layout.offset);
}

at::Tensor ElementsOf(const at::Tensor& tensor) {
  const std::optional<std::int64_t> span = LayoutOf(tensor).Span(kElementsMax);
  VERBATIM_CHECK(span.has_value(), "no tensor's layout");
  return tensor.detach().as_strided({*span}, {1});
}

void AppendLayout(const TensorLayout& layout, std::vector<std::int64_t>& numbers) {
  numbers.push_back(static_cast<std::int64_t>(ToDType(layout.type)));
  numbers.push_back(std::ssize(layout.sizes));
  numbers.push_back(layout.offset);
  numbers.insert(numbers.end(), layout.sizes.begin(), layout.sizes.end());
  numbers.insert(numbers.end(), layout.strides.begin(), layout.strides.end());
}

std::optional<std::vector<TensorLayout>> LayoutsOf(std::span<const std::int64_t> numbers) {
  std::vector<TensorLayout> layouts;
  while (!numbers.empty()) {
    std::optional<TensorLayout> layout = FirstLayout(numbers);
    if (!layout) return std::nullopt;
    numbers = numbers.subspan(kHeadNumbers + 2 * layout->sizes.size());
    layouts.push_back(*std::move(layout));
  }
  return layouts;
}

}  // namespace verbatim
