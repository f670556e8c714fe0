#include "supernet/operator_costs.h"

#include "supernet/sequence_costs.h"

namespace verbatim {
namespace {

/// Per element: the mean takes one, the variance three, normalising two, scale and shift two.
constexpr double kBatchNorm = 8.0;

double Pixels(const ActivationShape& shape) {
  return shape.IsImage() ? static_cast<double>(shape.height * shape.width) : 1.0;
}

double Elements(const ActivationShape& shape) {
  return static_cast<double>(shape.Elements());
}

/// Weights of a parameter, each of which is one multiply-add at every output pixel.
double Weights(const Layer& layer, std::size_t parameter) {
  double weights = 1.0;
  for (const std::int64_t size : layer.parameters.at(parameter).shape) {
    weights *= static_cast<double>(size);
  }
  return weights;
}

/// A mask is drawn and multiplied; mask and product are kept.
OperatorWork Dropout(const OperatorSpec& op, double elements) {
  if (op.dropout == 0.0) return {};
  return {.operations = 2.0 * elements, .kept = 2.0 * elements};
}

OperatorWork Conv(const Layer& layer) {
  const double out = Elements(layer.output);
  return {.operations = 2.0 * Weights(layer, 0) * Pixels(layer.output) + (kBatchNorm + 1.0) * out,
          .kept = out};
}

OperatorWork SeparableConv(const Layer& layer) {
  const double out = Elements(layer.output);
  const double between = static_cast<double>(layer.input.channels) * Pixels(layer.output);
  const double weights = Weights(layer, 0) + Weights(layer, 1);
  return {.operations = 2.0 * weights * Pixels(layer.output) + (kBatchNorm + 1.0) * out,
          .kept = between + out};
}

OperatorWork MbConv(const Layer& layer) {
  const bool expands = layer.op.expansion != 1;
  const double hidden = static_cast<double>(layer.input.channels * layer.op.expansion);
  const double in_pixels = Pixels(layer.input);
  const double out_pixels = Pixels(layer.output);
  OperatorWork work;
  if (expands) {  // its convolution, batch norm and clamp each keep what they give on
    work.operations +=
        2.0 * Weights(layer, 0) * in_pixels + (kBatchNorm + 1.0) * hidden * in_pixels;
    work.kept += 3.0 * hidden * in_pixels;
  }
  // Each batch norm has a weight and a bias: expand, bn1 (2), depthwise, bn2 (2), project.
  const std::size_t depthwise = expands ? 3 : 0;
  const double weights = Weights(layer, depthwise) + Weights(layer, depthwise + 3);
  work.operations += 2.0 * weights * out_pixels + (kBatchNorm + 1.0) * hidden * out_pixels +
                     kBatchNorm * Elements(layer.output);
  work.kept += 3.0 * hidden * out_pixels + Elements(layer.output);
  return work;
}

OperatorWork Pool(const Layer& layer) {
  const double window = static_cast<double>(layer.op.kernel * layer.op.kernel);
  // The largest element's index is a 64-bit integer.
  const double kept = layer.op.kind == OperatorKind::kMaxPool ? 2.0 * Elements(layer.output) : 0.0;
  return {.operations = window * Elements(layer.output), .kept = kept};
}

OperatorWork Linear(const Layer& layer) {
  const double out = Elements(layer.output);
  OperatorWork work = Dropout(layer.op, out);
  work.operations += 2.0 * Weights(layer, 0) + (layer.op.activation == Activation::kNone ? 0 : out);
  return work;
}

OperatorWork Ffn(const Layer& layer) {
  const auto hidden = static_cast<double>(layer.op.hidden);
  OperatorWork work = Dropout(layer.op, hidden);
  work.operations += 2.0 * (Weights(layer, 0) + Weights(layer, 2)) + hidden;
  work.kept += hidden;
  return work;
}

/// With the loss: the logits' softmax is kept.
OperatorWork Classifier(const Layer& layer) {
  const auto features = static_cast<double>(layer.input.channels);
  OperatorWork work = Dropout(layer.op, features);
  work.operations += Elements(layer.input) + 2.0 * Weights(layer, 0) + Elements(layer.output);
  work.kept += features + Elements(layer.output);
  return work;
}

/// A new operator adds its case here: the operations of its forward pass for one sample, and the
/// elements that it keeps beside its input.
OperatorWork OperatorOnly(const Layer& layer) {
  const bool is_skip = layer.op.kind == OperatorKind::kSkip;
  if (layer.input.IsSequence() && !is_skip) return SequenceWorkOf(layer);
  switch (layer.op.kind) {
    case OperatorKind::kConv:
      return Conv(layer);
    case OperatorKind::kSeparableConv:
      return SeparableConv(layer);
    case OperatorKind::kMbConv:
      return MbConv(layer);
    case OperatorKind::kAvgPool:
    case OperatorKind::kMaxPool:
      return Pool(layer);
    case OperatorKind::kSkip:
      return {};
    case OperatorKind::kLinear:
      return Linear(layer);
    case OperatorKind::kFfn:
      return Ffn(layer);
    case OperatorKind::kClassifier:
      return Classifier(layer);
    default:
      return {};  // on sequences only: SequenceWorkOf
  }
}

}  // namespace

OperatorWork WorkOf(const Layer& layer) {
  OperatorWork work = OperatorOnly(layer);
  if (layer.residual) work.operations += Elements(layer.output);
  return work;
}

}  // namespace verbatim
