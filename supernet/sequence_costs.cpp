#include "supernet/sequence_costs.h"

namespace verbatim {
namespace {

constexpr double kLayerNorm = 8.0;

/// The sizes that the counts are made of.
struct Sizes {
  double in;      ///< features of a place
  double out;     ///< likewise
  double places;  ///< that the layer works on
  double source;  ///< that it may look at beside
  double kernel;
  double heads;

  explicit Sizes(const Layer& layer)
      : in(static_cast<double>(layer.input.channels)),
        out(static_cast<double>(layer.output.channels)),
        places(static_cast<double>(layer.part == SequencePart::kEncoder
                                       ? layer.source
                                       : layer.input.length - layer.source)),
        source(static_cast<double>(layer.source)),
        kernel(static_cast<double>(layer.op.kernel)),
        heads(static_cast<double>(layer.op.heads)) {}

  /// A matrix from `from` to `to` features, applied at `at` places.
  static double Multiply(double from, double to, double at) { return 2.0 * from * to * at; }
  /// What is padded is a copy.
  double Padded() const { return in * (places + kernel - 1.0); }
};

OperatorWork Conv1d(const Sizes& size) {
  return {.operations = Sizes::Multiply(size.in * size.kernel, size.out, size.places),
          .kept = size.Padded()};
}

OperatorWork SeparableConv1d(const Sizes& size) {
  return {.operations = Sizes::Multiply(size.in, size.kernel + size.out, size.places),
          .kept = size.Padded() + size.in * size.places};
}

/// Input matrix with gate (four operations an element), depthwise convolution, output matrix.
OperatorWork LightweightConv(const Sizes& size) {
  const double gated = 4.0 * size.in * size.places;
  const double per_place = 2.0 * size.in + size.kernel + size.out;
  return {.operations = Sizes::Multiply(size.in, per_place, size.places) + gated,
          .kept = 3.0 * size.in * size.places + size.Padded()};
}

/// Scores of every place with each of `others`, their softmax (four operations a score), and the
/// weighted sum.
OperatorWork Scores(const Sizes& size, double others) {
  const double scores = size.heads * size.places * others;
  return {.operations = 2.0 * Sizes::Multiply(size.in, size.places, others) + 4.0 * scores,
          .kept = scores + size.in * size.places};
}

OperatorWork Attention(const Sizes& size) {
  OperatorWork work = Scores(size, size.places);
  work.operations += Sizes::Multiply(size.in, 3.0 * size.in + size.out, size.places);
  work.kept += 3.0 * size.in * size.places;
  return work;
}

OperatorWork CrossAttention(const Sizes& size) {
  OperatorWork work = Scores(size, size.source);
  work.operations += Sizes::Multiply(size.in, size.in + size.out, size.places) +
                     Sizes::Multiply(size.in, 2.0 * size.in, size.source) +
                     kLayerNorm * size.in * size.source;
  work.kept += size.in * size.places + 3.0 * size.in * size.source;
  return work;
}

OperatorWork Glu(const Sizes& size) {
  return {.operations =
              Sizes::Multiply(size.in, 2.0 * size.out, size.places) + 4.0 * size.out * size.places,
          .kept = 2.0 * size.out * size.places};
}

OperatorWork Ffn(const Sizes& size, double hidden) {
  return {.operations = Sizes::Multiply(size.in + size.out, hidden, size.places),
          .kept = hidden * size.places};
}

/// With the loss: the logits' softmax is kept.
OperatorWork Classifier(const Sizes& size) {
  return {.operations = Sizes::Multiply(size.in, size.out, size.places) + size.out * size.places,
          .kept = size.out * size.places};
}

OperatorWork OperatorOnly(const Layer& layer, const Sizes& size) {
  switch (layer.op.kind) {
    case OperatorKind::kConv1d:
      return Conv1d(size);
    case OperatorKind::kSeparableConv1d:
      return SeparableConv1d(size);
    case OperatorKind::kLightweightConv:
      return LightweightConv(size);
    case OperatorKind::kAttention:
      return Attention(size);
    case OperatorKind::kCrossAttention:
      return CrossAttention(size);
    case OperatorKind::kGlu:
      return Glu(size);
    case OperatorKind::kFfn:
      return Ffn(size, static_cast<double>(layer.op.hidden));
    case OperatorKind::kClassifier:
      return Classifier(size);
    default:
      return {};
  }
}

/// What the activation and the dropout mask are applied to.
double ActivatedWidth(const Layer& layer, const Sizes& size) {
  if (layer.op.kind == OperatorKind::kFfn) return static_cast<double>(layer.op.hidden);
  return layer.op.kind == OperatorKind::kClassifier ? size.in : size.out;
}

}  // namespace

OperatorWork SequenceWorkOf(const Layer& layer) {
  const Sizes size(layer);
  if (layer.op.kind == OperatorKind::kEmbedding) {  // looked up, not multiplied
    const double elements = static_cast<double>(layer.output.Elements());
    const double dropped = layer.op.dropout > 0.0 ? 2.0 * elements : 0.0;
    return {.operations = elements + dropped, .kept = dropped};
  }
  OperatorWork work = OperatorOnly(layer, size);
  work.operations += kLayerNorm * size.in * size.places;
  work.kept += size.in * size.places;
  const double activated = ActivatedWidth(layer, size) * size.places;
  const bool is_head = layer.op.kind == OperatorKind::kClassifier;
  if (!is_head && layer.op.activation != Activation::kNone) {
    work.operations += activated;
    work.kept += activated;
  }
  if (layer.op.dropout > 0.0) {
    work.operations += 2.0 * activated;
    work.kept += 2.0 * activated;
  }
  return work;
}

}  // namespace verbatim
