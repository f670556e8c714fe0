// Tensors as ranks send them to each other, and back, laid out as they were (tensor_layout.h).
//
// Their bytes are in the message; or, where devices send each other tensors directly
// (device_payloads.h), its last list of numbers says what was sent beside it: all tensors, but not
// the other lists of numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "trainer/device_stream.h"
#include "trainer/ranks/message.h"
#include "trainer/tensor_layout.h"

namespace verbatim {

/// Appends a contiguous tensor, as one. On the CPU nothing is copied: nobody may change it any
/// more.
void AppendTensor(const at::Tensor& tensor, std::vector<SentTensor>& sent);

/// Appends a tensor of any strides, as two: the elements from its first to its last in memory, and
/// its layout (sizes, strides, where it begins). Likewise.
void AppendStrided(const at::Tensor& tensor, std::vector<SentTensor>& sent);

/// Appends numbers, as one.
void AppendNumbers(std::span<const std::int64_t> numbers, std::vector<SentTensor>& sent);

/// Bytes of all of them.
std::int64_t BytesOf(std::span<const SentTensor> sent);

/// Puts tensors into a message, or beside it. Nobody may change them any more.
class TensorWriter {
 public:
  /// The message outlives it.
  explicit TensorWriter(Message& message, bool goes_directly = false)
      : message_(message), goes_directly_(goes_directly) {}

  /// A contiguous tensor. Waits until it is there, where its bytes are put into the message.
  void Tensor(const HandedTensor& handed);
  /// A tensor of any strides; likewise.
  void Strided(const HandedTensor& handed);
  void Numbers(std::span<const std::int64_t> numbers) { AppendNumbers(numbers, message_.tensors); }

  /// Call last, once. What is to be sent beside the message.
  std::vector<HandedTensor> Finish();
  /// Of all that was put, wherever.
  std::int64_t bytes() const;

 private:
  void AddToPayload(const HandedTensor& handed);

  Message& message_;
  const bool goes_directly_;
  std::vector<HandedTensor> payload_;
  std::vector<std::int64_t> layouts_;  ///< of the payload
  std::int64_t payload_bytes_ = 0;
};

/// What was sent beside a message, as its last list of numbers says, which is taken off `sent`.
Result<std::vector<TensorLayout>> PayloadOf(std::span<const SentTensor>& sent);

/// Takes tensors out of a message, in the order in which they were put, each in memory of its own.
/// kBadInput where the next one is not what is asked for. The message outlives it.
class TensorReader {
 public:
  /// Their bytes are in the message, and are copied to `device`.
  TensorReader(std::span<const SentTensor> sent, at::Device device)
      : sent_(sent), device_(device) {}
  /// They came beside it; `sent` as PayloadOf left it.
  TensorReader(std::span<const SentTensor> sent, std::vector<at::Tensor> payload)
      : sent_(sent), device_(at::kCPU), payload_(std::move(payload)) {}

  Result<at::Tensor> Tensor(at::ScalarType type, std::span<const std::int64_t> shape);
  Result<at::Tensor> Strided();
  Result<std::vector<std::int64_t>> Numbers();
  std::size_t left() const {
    return sent_.size() - next_ + (payload_ ? payload_->size() - next_of_payload_ : 0);
  }
  /// kBadInput where some are left.
  Status End() const;

 private:
  Result<const SentTensor*> Next();
  Result<at::Tensor> NextOfPayload();
  Result<at::Tensor> TensorOfPayload(at::ScalarType type, std::span<const std::int64_t> shape);

  std::span<const SentTensor> sent_;
  at::Device device_;
  std::optional<std::vector<at::Tensor>> payload_;
  std::size_t next_ = 0;
  std::size_t next_of_payload_ = 0;
};

}  // namespace verbatim
