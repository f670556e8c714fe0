#include "trainer/operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/relu6.h>

#include <algorithm>

#include "base/check.h"

namespace verbatim {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;

/// Hands out a layer's tensors in the order in which its operator uses them.
class LayerTensors {
 public:
  explicit LayerTensors(const OperatorContext& context) : context_(context) {}

  const at::Tensor& NextParameter() { return context_.parameters[next_parameter_++]; }
  const at::Tensor& NextBuffer() {
    static const at::Tensor kUndefined;
    return context_.buffers.empty() ? kUndefined : context_.buffers[next_buffer_++];
  }

  at::Tensor Convolve(const at::Tensor& x, std::int64_t stride, std::int64_t dilation,
                      std::int64_t groups) {
    const at::Tensor& weight = NextParameter();
    const std::int64_t padding = dilation * (weight.size(2) - 1) / 2;
    return at::conv2d(x, weight, /*bias=*/{}, stride, padding, dilation, groups);
  }

  at::Tensor Pointwise(const at::Tensor& x) { return Convolve(x, 1, 1, 1); }

  at::Tensor Depthwise(const at::Tensor& x, std::int64_t stride, std::int64_t dilation) {
    return Convolve(x, stride, dilation, x.size(1));
  }

  at::Tensor BatchNorm(const at::Tensor& x) {
    const at::Tensor& weight = NextParameter();
    const at::Tensor& bias = NextParameter();
    const at::Tensor& mean = NextBuffer();
    const at::Tensor& variance = NextBuffer();
    return at::batch_norm(x, weight, bias, mean, variance, context_.batch_norm.use_batch_statistics,
                          context_.batch_norm.momentum, kBatchNormEpsilon, /*cudnn_enabled=*/true);
  }

  at::Tensor Linear(const at::Tensor& x) {
    const at::Tensor& weight = NextParameter();
    const at::Tensor& bias = NextParameter();
    return at::linear(x, weight, bias);
  }

  at::Tensor Dropout(const at::Tensor& x, double probability) const {
    if (!context_.dropout || probability == 0.0) return x;
    return at::mul(x, DropoutMask(x, probability, *context_.dropout));
  }

 private:
  const OperatorContext& context_;
  std::size_t next_parameter_ = 0;
  std::size_t next_buffer_ = 0;
};

at::Tensor ApplyMbConv(const Layer& layer, const at::Tensor& x, LayerTensors& tensors) {
  at::Tensor y = x;
  if (layer.op.expansion != 1) y = at::relu6(tensors.BatchNorm(tensors.Pointwise(y)));
  y = at::relu6(tensors.BatchNorm(tensors.Depthwise(y, layer.stride, /*dilation=*/1)));
  return tensors.BatchNorm(tensors.Pointwise(y));
}

at::Tensor ApplyOperator(const Layer& layer, const at::Tensor& x, LayerTensors& tensors) {
  const OperatorSpec& op = layer.op;
  const std::int64_t padding = (op.kernel - 1) / 2;
  switch (op.kind) {
    case OperatorKind::kConv:
      return at::relu(tensors.BatchNorm(tensors.Convolve(x, layer.stride, op.dilation, op.groups)));
    case OperatorKind::kSeparableConv:
      return at::relu(
          tensors.BatchNorm(tensors.Pointwise(tensors.Depthwise(x, layer.stride, op.dilation))));
    case OperatorKind::kMbConv:
      return ApplyMbConv(layer, x, tensors);
    case OperatorKind::kAvgPool:
      return at::avg_pool2d(x, op.kernel, layer.stride, padding, /*ceil_mode=*/false,
                            /*count_include_pad=*/false);
    case OperatorKind::kMaxPool:
      return at::max_pool2d(x, op.kernel, layer.stride, padding);
    case OperatorKind::kSkip:
      return x;
    case OperatorKind::kLinear: {
      const at::Tensor y = tensors.Linear(x.flatten(1));
      return tensors.Dropout(op.activation == Activation::kRelu ? at::relu(y) : y, op.dropout);
    }
    case OperatorKind::kFfn: {
      const at::Tensor hidden = at::relu(tensors.Linear(x));
      return tensors.Linear(tensors.Dropout(hidden, op.dropout));
    }
    case OperatorKind::kClassifier: {
      const at::Tensor features = layer.input.IsImage() ? at::mean(x, {2, 3}) : x;
      return tensors.Linear(tensors.Dropout(features, op.dropout));
    }
  }
  VERBATIM_CHECK(false, "operator {}", static_cast<int>(op.kind));
}

}  // namespace

at::Tensor ApplyLayer(const Layer& layer, const at::Tensor& input, const OperatorContext& context) {
  LayerTensors tensors(context);
  const at::Tensor output = ApplyOperator(layer, input, tensors);
  return layer.residual ? at::add(output, input) : output;
}

at::Tensor DropoutMask(const at::Tensor& like, double probability, const RandomKey& key) {
  at::Tensor mask = at::empty(like.sizes(), like.options().device(at::kCPU));
  const auto threshold = static_cast<std::uint64_t>(probability * 0x1p32);
  const auto scale = static_cast<float>(1.0 / (1.0 - probability));
  float* const values = mask.mutable_data_ptr<float>();
  const std::int64_t size = mask.numel();
  for (std::int64_t block = 0; 4 * block < size; ++block) {
    const PhiloxBlock words = RandomBlock(key, static_cast<std::uint32_t>(block));
    const std::int64_t last = std::min<std::int64_t>(4, size - 4 * block);
    for (std::int64_t i = 0; i < last; ++i) {
      values[4 * block + i] = words.word[i] < threshold ? 0.0f : scale;
    }
  }
  return mask.to(like.device());
}

}  // namespace verbatim
