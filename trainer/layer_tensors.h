// A layer's tensors, handed to the operators' arithmetic in the order in which it uses them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "trainer/operators.h"

namespace verbatim {

/// One application of one layer. Each call takes the next parameters (and buffers) of
/// Layer::parameters, so calls come in their order.
class LayerTensors {
 public:
  /// `context` outlives it.
  explicit LayerTensors(const OperatorContext& context) : context_(context) {}

  const at::Tensor& NextParameter() { return context_.parameters[next_parameter_++]; }
  /// Undefined where the context has no buffers.
  const at::Tensor& NextBuffer();

  at::Tensor Convolve(const at::Tensor& x, std::int64_t stride, std::int64_t dilation,
                      std::int64_t groups);
  at::Tensor Pointwise(const at::Tensor& x) { return Convolve(x, 1, 1, 1); }
  at::Tensor Depthwise(const at::Tensor& x, std::int64_t stride, std::int64_t dilation) {
    return Convolve(x, stride, dilation, x.size(1));
  }
  at::Tensor BatchNorm(const at::Tensor& x);
  at::Tensor LayerNorm(const at::Tensor& x);
  at::Tensor Linear(const at::Tensor& x);
  /// The layer's one mask, where the context has a key.
  at::Tensor Dropout(const at::Tensor& x, double probability) const;

 private:
  const OperatorContext& context_;
  std::size_t next_parameter_ = 0;
  std::size_t next_buffer_ = 0;
};

at::Tensor Activate(Activation activation, const at::Tensor& x);

}  // namespace verbatim
