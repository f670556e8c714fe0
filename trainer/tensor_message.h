// Tensors as ranks send them to each other, and back.
//
// What is computed on a tensor that has arrived must have the bits that it would have had where the
// tensor came from, so it arrives with the same strides, and on an address with the same remainder
// by 64 bytes: kernels choose by both.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "trainer/ranks/message.h"

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

/// Takes tensors out of a message, in the order in which they were appended, each into memory of
/// its own on `device`. kBadInput where the next one is not what is asked for. The message outlives
/// it.
class TensorReader {
 public:
  TensorReader(std::span<const SentTensor> sent, at::Device device)
      : sent_(sent), device_(device) {}

  Result<at::Tensor> Tensor(at::ScalarType type, std::span<const std::int64_t> shape);
  Result<at::Tensor> Strided();
  Result<std::vector<std::int64_t>> Numbers();
  std::size_t left() const { return sent_.size() - next_; }
  /// kBadInput where some are left.
  Status End() const;

 private:
  Result<const SentTensor*> Next();

  std::span<const SentTensor> sent_;
  at::Device device_;
  std::size_t next_ = 0;
};

}  // namespace verbatim
