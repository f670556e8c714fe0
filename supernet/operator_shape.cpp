#include "supernet/operator_shape.h"

#include <fmt/format.h>

#include "supernet/spec_names.h"

namespace verbatim {
namespace {

Status ExpectImage(const OperatorSpec& op, const ActivationShape& input, const BlockSpec& block) {
  const std::string_view name = NameOf(kOperatorNames, op.kind);
  if (!input.IsImage()) {
    return BadInput(fmt::format("\"{}\" takes an image, but its input is a vector of {} features",
                                name, input.channels),
                    "use \"linear\", \"ffn\" or \"skip\" on vectors");
  }
  if (block.features > 0) {
    return BadInput(
        fmt::format("\"{}\" gives an image, but the block gives {} features", name, block.features),
        "write \"channels\" instead of \"features\"");
  }
  return {};
}

Status ExpectVectorOutput(const OperatorSpec& op, const BlockSpec& block, std::int64_t stride) {
  const std::string_view name = NameOf(kOperatorNames, op.kind);
  if (block.channels > 0) {
    return BadInput(
        fmt::format("\"{}\" gives a vector, but the block gives {} channels", name, block.channels),
        "write \"features\" instead of \"channels\"");
  }
  if (stride != 1) {
    return BadInput(fmt::format("\"{}\" has no stride, but the block has stride {}", name, stride),
                    "remove \"stride\"");
  }
  return {};
}

/// ⌈size/stride⌉, after checking that the kernel fits.
Result<ActivationShape> Slide(const OperatorSpec& op, const ActivationShape& input,
                              std::int64_t channels, std::int64_t stride) {
  const std::int64_t extent = op.dilation * (op.kernel - 1) + 1;
  if (extent > input.height || extent > input.width) {
    return BadInput(
        fmt::format("its kernel spans {} pixels, but its input is {}", extent, ToString(input)),
        "lower \"kernel\" or \"dilation\", or reduce the image later");
  }
  return ActivationShape{channels, (input.height + stride - 1) / stride,
                         (input.width + stride - 1) / stride};
}

Result<ActivationShape> InferConvolution(const OperatorSpec& op, const ActivationShape& input,
                                         const BlockSpec& block, std::int64_t stride) {
  RETURN_IF_ERROR(ExpectImage(op, input, block));
  const std::int64_t channels = block.channels > 0 ? block.channels : input.channels;
  if (input.channels % op.groups != 0 || channels % op.groups != 0) {
    return BadInput(fmt::format("{} groups do not divide {} input and {} output channels",
                                op.groups, input.channels, channels),
                    "choose a common divisor for \"groups\"");
  }
  return Slide(op, input, channels, stride);
}

Result<ActivationShape> InferPool(const OperatorSpec& op, const ActivationShape& input,
                                  const BlockSpec& block, std::int64_t stride) {
  RETURN_IF_ERROR(ExpectImage(op, input, block));
  if (block.channels > 0 && block.channels != input.channels) {
    return BadInput(fmt::format("pooling keeps its {} channels, but the block gives {}",
                                input.channels, block.channels),
                    "change the channels in a block without pooling");
  }
  return Slide(op, input, input.channels, stride);
}

Result<ActivationShape> InferSkip(const ActivationShape& input, const BlockSpec& block,
                                  std::int64_t stride) {
  const std::int64_t width = input.IsImage() ? block.channels : block.features;
  const std::int64_t other = input.IsImage() ? block.features : block.channels;
  if (stride != 1 || other > 0 || (width > 0 && width != input.channels)) {
    return BadInput(fmt::format("\"skip\" keeps its input's shape {}, but the block changes it",
                                ToString(input)),
                    "change shapes in a block without \"skip\"");
  }
  return input;
}

Result<ActivationShape> InferLinear(const OperatorSpec& op, const ActivationShape& input,
                                    const BlockSpec& block, std::int64_t stride) {
  RETURN_IF_ERROR(ExpectVectorOutput(op, block, stride));
  if (input.IsImage() && op.kind == OperatorKind::kFfn) {
    return BadInput(fmt::format("\"ffn\" takes a vector, but its input is {}", ToString(input)),
                    "put a block of \"linear\" before it");
  }
  if (input.IsImage() && block.features == 0) {
    return BadInput(
        fmt::format("\"linear\" flattens its input {}, and the block does not say to what length",
                    ToString(input)),
        "add \"features\" to the block");
  }
  return ActivationShape{block.features > 0 ? block.features : input.channels};
}

}  // namespace

Result<ActivationShape> InferOutput(const OperatorSpec& op, const ActivationShape& input,
                                    const BlockSpec& block, std::int64_t stride,
                                    std::int64_t classes) {
  switch (op.kind) {
    case OperatorKind::kConv:
    case OperatorKind::kSeparableConv:
    case OperatorKind::kMbConv:
      return InferConvolution(op, input, block, stride);
    case OperatorKind::kAvgPool:
    case OperatorKind::kMaxPool:
      return InferPool(op, input, block, stride);
    case OperatorKind::kSkip:
      return InferSkip(input, block, stride);
    case OperatorKind::kLinear:
    case OperatorKind::kFfn:
      return InferLinear(op, input, block, stride);
    case OperatorKind::kClassifier:
      return ActivationShape{classes};
  }
  return BadInput("unknown operator");
}

bool HasBatchNorm(OperatorKind kind) {
  return kind == OperatorKind::kConv || kind == OperatorKind::kSeparableConv ||
         kind == OperatorKind::kMbConv;
}

}  // namespace verbatim
