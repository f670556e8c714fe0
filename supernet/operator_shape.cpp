#include "supernet/operator_shape.h"

#include <fmt/format.h>

#include "supernet/spec_names.h"

namespace verbatim {
namespace {

Status ExpectImage(const OperatorSpec& op, const ActivationShape& input, const BlockSpec& block) {
  const std::string_view name = NameOf(kOperatorNames, op.kind);
  if (input.IsSequence()) {
    return BadInput(fmt::format("\"{}\" takes an image, but its input is a sequence of {}", name,
                                ToString(input)),
                    "use \"conv1d\", \"attention\", \"ffn\" or their like on sequences");
  }
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

/// Of an operator that gives `what`, a vector or a sequence.
Status ExpectFeatures(const OperatorSpec& op, const BlockSpec& block, std::int64_t stride,
                      const char* what) {
  const std::string_view name = NameOf(kOperatorNames, op.kind);
  if (block.channels > 0) {
    return BadInput(
        fmt::format("\"{}\" gives {}, but the block gives {} channels", name, what, block.channels),
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
  RETURN_IF_ERROR(ExpectFeatures(op, block, stride, "a vector"));
  if (input.IsSequence()) {
    return BadInput(
        fmt::format("\"linear\" takes a vector or an image, but its input is a sequence of {}",
                    ToString(input)),
        "use \"ffn\", \"glu\" or \"conv1d\" on sequences");
  }
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

/// What concerns the two parts of a sequence.
Status CheckPart(const OperatorSpec& op, const ActivationShape& input, const BlockSpec& block,
                 std::int64_t source) {
  if (block.part == SequencePart::kEncoder && source == 0) {
    return BadInput("its part is the encoder, but no place of the sequence is the encoder's",
                    "set data.source above 0, or remove \"part\"");
  }
  if (op.kind == OperatorKind::kCrossAttention &&
      (source == 0 || block.part == SequencePart::kEncoder)) {
    return BadInput("\"cross_attention\" is for the decoder of a sequence that has an encoder",
                    source == 0 ? "set data.source above 0, or use \"attention\""
                                : "use \"attention\" in the encoder");
  }
  if (source > 0 && block.features > 0 && block.features != input.channels) {
    return BadInput(fmt::format("encoder and decoder share one width, {}, but the block gives {}",
                                input.channels, block.features),
                    "give the width in the stem only");
  }
  return {};
}

bool HasHeads(OperatorKind kind) {
  return kind == OperatorKind::kAttention || kind == OperatorKind::kCrossAttention ||
         kind == OperatorKind::kLightweightConv;
}

Result<ActivationShape> InferSequence(const OperatorSpec& op, const ActivationShape& input,
                                      const BlockSpec& block, std::int64_t stride,
                                      std::int64_t source) {
  if (!input.IsSequence()) {
    return BadInput(fmt::format("\"{}\" takes a sequence, but its input is {}",
                                NameOf(kOperatorNames, op.kind), ToString(input)),
                    "sequences come from data.format \"text\"");
  }
  RETURN_IF_ERROR(ExpectFeatures(op, block, stride, "a sequence"));
  RETURN_IF_ERROR(CheckPart(op, input, block, source));
  if (HasHeads(op.kind) && input.channels % op.heads != 0) {
    return BadInput(fmt::format("{} heads do not divide {} features", op.heads, input.channels),
                    "choose a divisor for \"heads\"");
  }
  return ActivationShape{.channels = block.features > 0 ? block.features : input.channels,
                         .length = input.length};
}

Result<ActivationShape> InferEmbedding(const OperatorSpec& op, const ActivationShape& input,
                                       const BlockSpec& block, std::int64_t stride) {
  if (!input.IsSequence()) {
    return BadInput(fmt::format("\"embedding\" takes a text, but its input is {}", ToString(input)),
                    "use \"conv\" or \"linear\" for images");
  }
  RETURN_IF_ERROR(ExpectFeatures(op, block, stride, "a sequence"));
  if (block.features == 0) {
    return BadInput("\"embedding\" turns bytes into features, and does not say into how many",
                    "add \"features\" to the stem");
  }
  return ActivationShape{.channels = block.features, .length = input.length};
}

}  // namespace

Result<ActivationShape> InferOutput(const OperatorSpec& op, const ActivationShape& input,
                                    const BlockSpec& block, std::int64_t stride,
                                    const ShapeContext& context) {
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
    case OperatorKind::kFfn:
      if (input.IsSequence()) return InferSequence(op, input, block, stride, context.source);
      [[fallthrough]];
    case OperatorKind::kLinear:
      return InferLinear(op, input, block, stride);
    case OperatorKind::kClassifier:
      return ActivationShape{
          .channels = context.classes,
          .length = input.IsSequence() ? input.length - context.source : std::int64_t{0}};
    case OperatorKind::kEmbedding:
      return InferEmbedding(op, input, block, stride);
    case OperatorKind::kConv1d:
    case OperatorKind::kSeparableConv1d:
    case OperatorKind::kLightweightConv:
    case OperatorKind::kAttention:
    case OperatorKind::kCrossAttention:
    case OperatorKind::kGlu:
      return InferSequence(op, input, block, stride, context.source);
  }
  return BadInput("unknown operator");
}

bool HasBatchNorm(OperatorKind kind) {
  return kind == OperatorKind::kConv || kind == OperatorKind::kSeparableConv ||
         kind == OperatorKind::kMbConv;
}

}  // namespace verbatim
