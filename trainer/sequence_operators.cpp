#include "trainer/sequence_operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "trainer/layer_tensors.h"

namespace verbatim {
namespace {

/// What an operator works on: the places of its part, and the encoder's beside.
struct Places {
  at::Tensor own;
  at::Tensor source;  ///< undefined where there is no encoder
  bool causal;        ///< no place may look at a later one
};

/// N × T × C as N × C × T and back.
at::Tensor SwapPlacesAndFeatures(const at::Tensor& x) {
  return x.transpose(1, 2).contiguous();
}

/// Zeros around N × C × T, so that a kernel of this size gives T places again.
at::Tensor Pad(const at::Tensor& x, std::int64_t kernel, bool causal) {
  const std::int64_t left = causal ? kernel - 1 : (kernel - 1) / 2;
  return at::constant_pad_nd(x, {left, kernel - 1 - left}, 0);
}

/// One kernel per channel: `weight` is C × 1 × k.
at::Tensor Depthwise(const at::Tensor& x, const at::Tensor& weight) {
  constexpr std::int64_t kStride = 1;
  constexpr std::int64_t kPadding = 0;
  constexpr std::int64_t kDilation = 1;
  return at::conv1d(x, weight, /*bias=*/{}, kStride, kPadding, kDilation, x.size(1));
}

at::Tensor Conv1d(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const at::Tensor x = SwapPlacesAndFeatures(tensors.LayerNorm(places.own));
  const at::Tensor& weight = tensors.NextParameter();
  const at::Tensor& bias = tensors.NextParameter();
  return SwapPlacesAndFeatures(at::conv1d(Pad(x, layer.op.kernel, places.causal), weight, bias));
}

at::Tensor SeparableConv1d(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const at::Tensor x = SwapPlacesAndFeatures(tensors.LayerNorm(places.own));
  const at::Tensor& depthwise = tensors.NextParameter();
  const at::Tensor& pointwise = tensors.NextParameter();
  const at::Tensor& bias = tensors.NextParameter();
  const at::Tensor y = Depthwise(Pad(x, layer.op.kernel, places.causal), depthwise);
  return SwapPlacesAndFeatures(at::conv1d(y, pointwise, bias));
}

/// Each head's kernel, normalised to a weighted mean, serves all channels of the head.
at::Tensor LightweightConv(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const std::int64_t channels = places.own.size(2);
  const std::int64_t heads = layer.op.heads;
  const std::int64_t kernel = layer.op.kernel;
  const at::Tensor gated = at::glu(tensors.Linear(tensors.LayerNorm(places.own)), -1);
  const at::Tensor weights = at::softmax(tensors.NextParameter(), -1)
                                 .unsqueeze(1)
                                 .expand({heads, channels / heads, kernel})
                                 .reshape({channels, 1, kernel});
  const at::Tensor x = Pad(SwapPlacesAndFeatures(gated), kernel, places.causal);
  return tensors.Linear(SwapPlacesAndFeatures(Depthwise(x, weights)));
}

/// N × T × C as N × heads × T × (C / heads).
at::Tensor SplitHeads(const at::Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

/// Spelled out: fused attention chooses its kernel by machine, and not all of them give the same
/// bits again.
at::Tensor Attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  std::int64_t heads, bool causal) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(2) / heads));
  at::Tensor scores =
      at::matmul(SplitHeads(query, heads), SplitHeads(key, heads).transpose(2, 3)).mul(scale);
  if (causal) {
    const at::Tensor later =
        at::ones({query.size(1), key.size(1)}, scores.options().dtype(at::kBool)).triu(1);
    scores = at::masked_fill(scores, later, -std::numeric_limits<double>::infinity());
  }
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), SplitHeads(value, heads));
  return mixed.transpose(1, 2).reshape(query.sizes());
}

at::Tensor Attention(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const auto parts = tensors.Linear(tensors.LayerNorm(places.own)).chunk(3, -1);
  return tensors.Linear(Attend(parts[0], parts[1], parts[2], layer.op.heads, places.causal));
}

at::Tensor CrossAttention(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const at::Tensor own = tensors.LayerNorm(places.own);
  const at::Tensor source = tensors.LayerNorm(places.source);
  const at::Tensor query = tensors.Linear(own);
  const auto memory = tensors.Linear(source).chunk(2, -1);
  return tensors.Linear(Attend(query, memory[0], memory[1], layer.op.heads, /*causal=*/false));
}

at::Tensor Ffn(const Layer& layer, const Places& places, LayerTensors& tensors) {
  const at::Tensor hidden = tensors.Linear(tensors.LayerNorm(places.own));
  const at::Tensor activated = Activate(layer.op.activation, hidden);
  return tensors.Linear(tensors.Dropout(activated, layer.op.dropout));
}

at::Tensor Transform(const Layer& layer, const Places& places, LayerTensors& tensors) {
  switch (layer.op.kind) {
    case OperatorKind::kConv1d:
      return Conv1d(layer, places, tensors);
    case OperatorKind::kSeparableConv1d:
      return SeparableConv1d(layer, places, tensors);
    case OperatorKind::kLightweightConv:
      return LightweightConv(layer, places, tensors);
    case OperatorKind::kAttention:
      return Attention(layer, places, tensors);
    case OperatorKind::kCrossAttention:
      return CrossAttention(layer, places, tensors);
    case OperatorKind::kGlu:
      return at::glu(tensors.Linear(tensors.LayerNorm(places.own)), -1);
    default:
      VERBATIM_CHECK(false, "operator {} on a sequence", static_cast<int>(layer.op.kind));
  }
}

at::Tensor ApplyOperator(const Layer& layer, const Places& places, LayerTensors& tensors) {
  if (layer.op.kind == OperatorKind::kFfn) return Ffn(layer, places, tensors);
  const at::Tensor y = Activate(layer.op.activation, Transform(layer, places, tensors));
  return tensors.Dropout(y, layer.op.dropout);
}

at::Tensor Embed(const Layer& layer, const at::Tensor& bytes, LayerTensors& tensors) {
  const at::Tensor& embedding = tensors.NextParameter();
  const at::Tensor& position = tensors.NextParameter();
  return tensors.Dropout(at::add(at::embedding(embedding, bytes), position), layer.op.dropout);
}

at::Tensor Classify(const Layer& layer, const at::Tensor& x, const OperatorContext& context,
                    LayerTensors& tensors) {
  const at::Tensor features = tensors.Dropout(tensors.LayerNorm(x), layer.op.dropout);
  if (!layer.op.tied) return tensors.Linear(features);
  return at::linear(features, context.tied, tensors.NextParameter());
}

}  // namespace

at::Tensor ApplySequenceLayer(const Layer& layer, const at::Tensor& input,
                              const OperatorContext& context) {
  LayerTensors tensors(context);
  if (layer.op.kind == OperatorKind::kEmbedding) return Embed(layer, input, tensors);
  if (layer.op.kind == OperatorKind::kSkip) return input;
  const bool is_decoder = layer.part == SequencePart::kDecoder;
  const std::int64_t source = layer.source;
  at::Tensor encoded;
  at::Tensor decoded = input;
  if (source > 0) {
    encoded = input.narrow(1, 0, source);
    decoded = input.narrow(1, source, input.size(1) - source);
  }
  if (layer.op.kind == OperatorKind::kClassifier) return Classify(layer, decoded, context, tensors);
  at::Tensor& own = is_decoder ? decoded : encoded;
  const at::Tensor output = ApplyOperator(layer, Places{own, encoded, is_decoder}, tensors);
  own = layer.residual ? at::add(output, own) : output;
  return source > 0 ? at::cat({encoded, decoded}, 1) : decoded;
}

}  // namespace verbatim
