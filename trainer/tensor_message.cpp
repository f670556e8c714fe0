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

/// As the numbers that follow a strided tensor.
std::vector<std::int64_t> Numbers(const TensorLayout& layout) {
  std::vector<std::int64_t> numbers = layout.sizes;
  numbers.insert(numbers.end(), layout.strides.begin(), layout.strides.end());
  numbers.push_back(layout.offset);
  return numbers;
}

std::optional<TensorLayout> LayoutFrom(std::span<const std::int64_t> numbers) {
  const std::size_t rank = numbers.size() / 2;
  if (numbers.size() % 2 == 0 || rank > kTensorDimensionsMax) return std::nullopt;
  TensorLayout layout;
  layout.sizes.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(rank));
  layout.strides.assign(numbers.begin() + static_cast<std::ptrdiff_t>(rank), numbers.end() - 1);
  layout.offset = numbers.back();
  if (layout.offset < 0 || layout.offset >= kTensorAlignment) return std::nullopt;
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
  sent.push_back(Share(ElementsOf(tensor)));
  AppendNumbers(Numbers(LayoutOf(tensor)), sent);
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

void TensorWriter::Tensor(const HandedTensor& handed) {
  VERBATIM_CHECK(handed.tensor.is_contiguous());
  if (goes_directly_) return AddToPayload(handed);
  Synchronize(handed.ready);
  AppendTensor(handed.tensor, message_.tensors);
}

void TensorWriter::Strided(const HandedTensor& handed) {
  if (goes_directly_) return AddToPayload(handed);
  Synchronize(handed.ready);
  AppendStrided(handed.tensor, message_.tensors);
}

void TensorWriter::AddToPayload(const HandedTensor& handed) {
  const TensorLayout layout = LayoutOf(handed.tensor);
  payload_bytes_ += layout.Bytes();
  AppendLayout(layout, layouts_);
  payload_.push_back({handed.tensor.detach(), handed.ready});
}

std::vector<HandedTensor> TensorWriter::Finish() {
  if (goes_directly_) AppendNumbers(layouts_, message_.tensors);
  return std::move(payload_);
}

std::int64_t TensorWriter::bytes() const {
  return BytesOf(message_.tensors) + payload_bytes_;
}

Result<std::vector<TensorLayout>> PayloadOf(std::span<const SentTensor>& sent) {
  if (sent.empty()) return BadInput("it does not say what was sent beside it");
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers,
                   TensorReader(sent.last(1), at::kCPU).Numbers());
  auto layouts = LayoutsOf(numbers);
  if (!layouts) return BadInput("what it says was sent beside it are no tensors");
  sent = sent.first(sent.size() - 1);
  return *std::move(layouts);
}

Result<const SentTensor*> TensorReader::Next() {
  if (next_ == sent_.size()) return BadInput("it lacks a tensor");
  return &sent_[next_++];
}

Result<at::Tensor> TensorReader::NextOfPayload() {
  if (next_of_payload_ == payload_->size()) return BadInput("it lacks a tensor");
  return (*payload_)[next_of_payload_++];
}

Result<at::Tensor> TensorReader::TensorOfPayload(at::ScalarType type,
                                                 std::span<const std::int64_t> shape) {
  ASSIGN_OR_RETURN(at::Tensor tensor, NextOfPayload());
  if (tensor.scalar_type() == type && std::ranges::equal(tensor.sizes(), shape) &&
      tensor.is_contiguous()) {
    return tensor;
  }
  return BadInput(
      fmt::format("tensor {} beside it has another type or shape", next_of_payload_ - 1));
}

Result<at::Tensor> TensorReader::Tensor(at::ScalarType type, std::span<const std::int64_t> shape) {
  if (payload_) return TensorOfPayload(type, shape);
  ASSIGN_OR_RETURN(const SentTensor* sent, Next());
  if (ToScalarType(sent->dtype) != type || !std::ranges::equal(sent->shape, shape)) {
    return BadInput(fmt::format("its tensor {} has another type or shape", next_ - 1));
  }
  const auto elements = static_cast<std::int64_t>(sent->size / SizeOf(sent->dtype));
  return CopyOf(*sent, device_, 0, elements).view(at::IntArrayRef(shape.data(), shape.size()));
}

Result<at::Tensor> TensorReader::Strided() {
  if (payload_) return NextOfPayload();
  ASSIGN_OR_RETURN(const SentTensor* sent, Next());
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers, Numbers());
  const std::optional<TensorLayout> layout = LayoutFrom(numbers);
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
