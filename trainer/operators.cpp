#include "trainer/operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/relu6.h>

#include "base/check.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/dropout_value.h"
#include "trainer/layer_tensors.h"
#include "trainer/sequence_operators.h"

namespace verbatim {
namespace {

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
      return tensors.Dropout(Activate(op.activation, y), op.dropout);
    }
    case OperatorKind::kFfn: {
      const at::Tensor hidden = Activate(op.activation, tensors.Linear(x));
      return tensors.Linear(tensors.Dropout(hidden, op.dropout));
    }
    case OperatorKind::kClassifier: {
      const at::Tensor features = layer.input.IsImage() ? at::mean(x, {2, 3}) : x;
      return tensors.Linear(tensors.Dropout(features, op.dropout));
    }
    default:
      break;  // on sequences only
  }
  VERBATIM_CHECK(false, "operator {}", static_cast<int>(op.kind));
}

}  // namespace

at::Tensor ApplyLayer(const Layer& layer, const at::Tensor& input, const OperatorContext& context) {
  if (layer.input.IsSequence()) return ApplySequenceLayer(layer, input, context);
  LayerTensors tensors(context);
  const at::Tensor output = ApplyOperator(layer, input, tensors);
  return layer.residual ? at::add(output, input) : output;
}

at::Tensor DropoutMask(const at::Tensor& like, double probability, const RandomKey& key) {
  at::Tensor mask = at::empty(like.sizes(), like.options());
  if (!mask.is_cpu()) {
    EnqueueDropoutMask(key, probability, mask);
    return mask;
  }
  const DropoutRule rule = DropoutRule::Of(probability);
  float* const values = mask.mutable_data_ptr<float>();
  const std::int64_t size = mask.numel();
  for (std::int64_t block = 0; 4 * block < size; ++block) {
    FillDropoutBlock(key, rule, block, size, values);
  }
  return mask;
}

}  // namespace verbatim
