#include "trainer/layer_tensors.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "base/check.h"

namespace verbatim {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kLeakySlope = 0.01;

}  // namespace

const at::Tensor& LayerTensors::NextBuffer() {
  static const at::Tensor kUndefined;
  return context_.buffers.empty() ? kUndefined : context_.buffers[next_buffer_++];
}

at::Tensor LayerTensors::Convolve(const at::Tensor& x, std::int64_t stride, std::int64_t dilation,
                                  std::int64_t groups) {
  const at::Tensor& weight = NextParameter();
  const std::int64_t padding = dilation * (weight.size(2) - 1) / 2;
  return at::conv2d(x, weight, /*bias=*/{}, stride, padding, dilation, groups);
}

at::Tensor LayerTensors::BatchNorm(const at::Tensor& x) {
  const at::Tensor& weight = NextParameter();
  const at::Tensor& bias = NextParameter();
  const at::Tensor& mean = NextBuffer();
  const at::Tensor& variance = NextBuffer();
  return at::batch_norm(x, weight, bias, mean, variance, context_.batch_norm.use_batch_statistics,
                        context_.batch_norm.momentum, kNormEpsilon, /*cudnn_enabled=*/true);
}

at::Tensor LayerTensors::LayerNorm(const at::Tensor& x) {
  const at::Tensor& weight = NextParameter();
  const at::Tensor& bias = NextParameter();
  return at::layer_norm(x, weight.sizes(), weight, bias, kNormEpsilon);
}

at::Tensor LayerTensors::Linear(const at::Tensor& x) {
  const at::Tensor& weight = NextParameter();
  const at::Tensor& bias = NextParameter();
  return at::linear(x, weight, bias);
}

at::Tensor LayerTensors::Dropout(const at::Tensor& x, double probability) const {
  if (!context_.dropout || probability == 0.0) return x;
  return at::mul(x, DropoutMask(x, probability, *context_.dropout));
}

at::Tensor Activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kSwish:
      return at::silu(x);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, kLeakySlope);
  }
  VERBATIM_CHECK(false, "activation {}", static_cast<int>(activation));
}

}  // namespace verbatim
