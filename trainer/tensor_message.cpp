#include "trainer/tensor_message.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "trainer/tensor_dtype.h"

namespace verbatim {
namespace {

constexpr std::int64_t kAlignment = 64;      ///< of LibTorch's CPU tensors
constexpr std::int64_t kDimensionsMax = 16;  ///< of a tensor in a message

/// `tensor` is dense and contiguous.
SentTensor Share(at::Tensor tensor) {
  auto owner = std::make_shared<const at::Tensor>(tensor.detach().to(at::kCPU));
  SentTensor sent;
  sent.dtype = ToDType(owner->scalar_type());
  sent.shape.assign(owner->sizes().begin(), owner->sizes().end());
  sent.data = static_cast<const std::byte*>(owner->const_data_ptr());
  sent.size = owner->nbytes();
  sent.owner = std::move(owner);
  return sent;
}

/// Where a strided tensor lies in its span of elements.
struct Layout {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;  ///< of its first element, from an aligned address

  /// From the first element to the last in memory; 0 where it has none. Nothing where that is no
  /// tensor's, or not below `max`.
  std::optional<std::int64_t> Span(std::int64_t max) const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 0 || strides[i] < 0) return std::nullopt;
      if (sizes[i] == 0) return 0;
      if (strides[i] > 0 && sizes[i] - 1 > (max - last) / strides[i]) return std::nullopt;
      last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
  }

  std::vector<std::int64_t> Numbers() const {
    std::vector<std::int64_t> numbers = sizes;
    numbers.insert(numbers.end(), strides.begin(), strides.end());
    numbers.push_back(offset);
    return numbers;
  }

  static std::optional<Layout> Of(std::span<const std::int64_t> numbers) {
    const std::size_t rank = numbers.size() / 2;
    if (numbers.size() % 2 == 0 || rank > kDimensionsMax) return std::nullopt;
    Layout layout;
    layout.sizes.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(rank));
    layout.strides.assign(numbers.begin() + static_cast<std::ptrdiff_t>(rank), numbers.end() - 1);
    layout.offset = numbers.back();
    if (layout.offset < 0 || layout.offset >= kAlignment) return std::nullopt;
    return layout;
  }
};

Layout LayoutOf(const at::Tensor& tensor) {
  Layout layout;
  layout.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  layout.strides.assign(tensor.strides().begin(), tensor.strides().end());
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  layout.offset = static_cast<std::int64_t>(address % kAlignment) / tensor.element_size();
  return layout;
}

/// A copy of the bytes, as the elements from `offset` on of memory that is aligned.
at::Tensor CopyOf(const SentTensor& sent, at::Device device, std::int64_t offset,
                  std::int64_t elements) {
  const auto options = at::TensorOptions().dtype(ToScalarType(sent.dtype));
  at::Tensor memory = at::empty({offset + elements}, options);
  if (sent.size > 0) {
    auto* const begin = static_cast<std::byte*>(memory.mutable_data_ptr());
    std::memcpy(begin + offset * memory.element_size(), sent.data, sent.size);
  }
  return memory.to(device);
}

}  // namespace

void AppendTensor(const at::Tensor& tensor, std::vector<SentTensor>& sent) {
  VERBATIM_CHECK(tensor.is_contiguous());
  sent.push_back(Share(tensor));
}

void AppendStrided(const at::Tensor& tensor, std::vector<SentTensor>& sent) {
  const Layout layout = LayoutOf(tensor);
  const std::int64_t span = layout.Span(INT64_MAX).value();
  sent.push_back(Share(tensor.detach().as_strided({span}, {1})));
  AppendNumbers(layout.Numbers(), sent);
}

void AppendNumbers(std::span<const std::int64_t> numbers, std::vector<SentTensor>& sent) {
  auto owner = std::make_shared<const std::vector<std::int64_t>>(numbers.begin(), numbers.end());
  SentTensor tensor;
  tensor.dtype = DType::kInt64;
  tensor.shape = {std::ssize(*owner)};
  tensor.data = reinterpret_cast<const std::byte*>(owner->data());
  tensor.size = owner->size() * sizeof(std::int64_t);
  tensor.owner = std::move(owner);
  sent.push_back(std::move(tensor));
}

std::int64_t BytesOf(std::span<const SentTensor> sent) {
  std::size_t bytes = 0;
  for (const SentTensor& tensor : sent) bytes += tensor.size;
  return static_cast<std::int64_t>(bytes);
}

Result<const SentTensor*> TensorReader::Next() {
  if (left() == 0) return BadInput("it lacks a tensor");
  return &sent_[next_++];
}

Result<at::Tensor> TensorReader::Tensor(at::ScalarType type, std::span<const std::int64_t> shape) {
  ASSIGN_OR_RETURN(const SentTensor* sent, Next());
  if (ToScalarType(sent->dtype) != type || !std::ranges::equal(sent->shape, shape)) {
    return BadInput(fmt::format("its tensor {} has another type or shape", next_ - 1));
  }
  const auto elements = static_cast<std::int64_t>(sent->size / SizeOf(sent->dtype));
  return CopyOf(*sent, device_, 0, elements).view(at::IntArrayRef(shape.data(), shape.size()));
}

Result<at::Tensor> TensorReader::Strided() {
  ASSIGN_OR_RETURN(const SentTensor* sent, Next());
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers, Numbers());
  const std::optional<Layout> layout = Layout::Of(numbers);
  if (sent->shape.size() != 1 || ToScalarType(sent->dtype) == at::ScalarType::Undefined ||
      !layout || layout->Span(sent->shape[0]) != sent->shape[0]) {
    return BadInput(fmt::format("the layout of its tensor {} does not fit it", next_ - 2));
  }
  const at::Tensor memory = CopyOf(*sent, device_, layout->offset, sent->shape[0]);
  return memory.as_strided(layout->sizes, layout->strides, layout->offset);
}

Result<std::vector<std::int64_t>> TensorReader::Numbers() {
  ASSIGN_OR_RETURN(const SentTensor* sent, Next());
  if (sent->dtype != DType::kInt64 || sent->shape.size() != 1) {
    return BadInput(fmt::format("its tensor {} is no list of numbers", next_ - 1));
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(sent->shape[0]));
  if (sent->size > 0) std::memcpy(numbers.data(), sent->data, sent->size);
  return numbers;
}

Status TensorReader::End() const {
  if (left() > 0) return BadInput(fmt::format("it has {} tensors too many", left()));
  return {};
}

}  // namespace verbatim
