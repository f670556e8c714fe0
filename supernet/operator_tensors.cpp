#include "supernet/operator_tensors.h"

#include <string>
#include <utility>

namespace verbatim {
namespace {

class TensorList {
 public:
  void Weight(const std::string& layer, std::vector<std::int64_t> shape) {
    tensors_.parameters.push_back(
        {layer + ".weight", std::move(shape), ParameterInit::kKaimingUniform});
  }
  void Linear(const std::string& layer, std::int64_t out, std::int64_t in) {
    Weight(layer, {out, in});
    Bias(layer, out);
  }
  void LayerNorm(const std::string& layer, std::int64_t features) {
    tensors_.parameters.push_back({layer + ".weight", {features}, ParameterInit::kOnes});
    tensors_.parameters.push_back({layer + ".bias", {features}, ParameterInit::kZeros});
  }
  void Bias(const std::string& layer, std::int64_t features) {
    tensors_.parameters.push_back({layer + ".bias", {features}, ParameterInit::kZeros});
  }
  void BatchNorm(const std::string& layer, std::int64_t channels) {
    tensors_.parameters.push_back({layer + ".weight", {channels}, ParameterInit::kOnes});
    tensors_.parameters.push_back({layer + ".bias", {channels}, ParameterInit::kZeros});
    tensors_.buffers.push_back({layer + ".running_mean", {channels}, ParameterInit::kZeros});
    tensors_.buffers.push_back({layer + ".running_var", {channels}, ParameterInit::kOnes});
  }
  OperatorTensors Take() { return std::move(tensors_); }

 private:
  OperatorTensors tensors_;
};

void AddMbConv(const OperatorSpec& op, std::int64_t in, std::int64_t out, TensorList* list) {
  const std::int64_t hidden = in * op.expansion;
  if (op.expansion != 1) {
    list->Weight("expand", {hidden, in, 1, 1});
    list->BatchNorm("bn1", hidden);
  }
  list->Weight("depthwise", {hidden, 1, op.kernel, op.kernel});
  list->BatchNorm("bn2", hidden);
  list->Weight("project", {out, hidden, 1, 1});
  list->BatchNorm("bn3", out);
}

/// Operators on a sequence: each begins with its own layer norm.
void AddSequence(const OperatorSpec& op, std::int64_t in, std::int64_t out, TensorList* list) {
  list->LayerNorm("ln", in);
  switch (op.kind) {
    case OperatorKind::kConv1d:
      list->Weight("conv", {out, in, op.kernel});
      list->Bias("conv", out);
      break;
    case OperatorKind::kSeparableConv1d:
      list->Weight("depthwise", {in, 1, op.kernel});
      list->Weight("pointwise", {out, in, 1});
      list->Bias("pointwise", out);
      break;
    case OperatorKind::kLightweightConv:
      list->Linear("in", 2 * in, in);
      list->Weight("kernel", {op.heads, op.kernel});
      list->Linear("out", out, in);
      break;
    case OperatorKind::kAttention:
      list->Linear("in", 3 * in, in);
      list->Linear("out", out, in);
      break;
    case OperatorKind::kCrossAttention:
      list->LayerNorm("memory_ln", in);
      list->Linear("query", in, in);
      list->Linear("memory", 2 * in, in);
      list->Linear("out", out, in);
      break;
    case OperatorKind::kGlu:
      list->Linear("linear", 2 * out, in);
      break;
    case OperatorKind::kFfn:
      list->Linear("in", op.hidden, in);
      list->Linear("out", out, op.hidden);
      break;
    case OperatorKind::kClassifier:
      if (op.tied) {
        list->Bias("linear", out);
      } else {
        list->Linear("linear", out, in);
      }
      break;
    default:
      break;
  }
}

}  // namespace

OperatorTensors TensorsOf(const OperatorSpec& op, const ActivationShape& input,
                          const ActivationShape& output) {
  const std::int64_t in = input.channels;
  const std::int64_t out = output.channels;
  TensorList list;
  if (input.IsSequence() && op.kind != OperatorKind::kSkip && op.kind != OperatorKind::kEmbedding) {
    AddSequence(op, in, out, &list);
    return list.Take();
  }
  switch (op.kind) {
    case OperatorKind::kConv:
      list.Weight("conv", {out, in / op.groups, op.kernel, op.kernel});
      list.BatchNorm("bn", out);
      break;
    case OperatorKind::kSeparableConv:
      list.Weight("depthwise", {in, 1, op.kernel, op.kernel});
      list.Weight("pointwise", {out, in, 1, 1});
      list.BatchNorm("bn", out);
      break;
    case OperatorKind::kMbConv:
      AddMbConv(op, in, out, &list);
      break;
    case OperatorKind::kAvgPool:
    case OperatorKind::kMaxPool:
    case OperatorKind::kSkip:
      break;
    case OperatorKind::kLinear:
      list.Linear("linear", out, input.Elements());
      break;
    case OperatorKind::kFfn:
      list.Linear("in", op.hidden, in);
      list.Linear("out", out, op.hidden);
      break;
    case OperatorKind::kClassifier:
      list.Linear("linear", out, in);
      break;
    case OperatorKind::kEmbedding:
      list.Weight("embedding", {kByteClasses, out});
      list.Weight("position", {input.length, out});
      break;
    case OperatorKind::kConv1d:
    case OperatorKind::kSeparableConv1d:
    case OperatorKind::kLightweightConv:
    case OperatorKind::kAttention:
    case OperatorKind::kCrossAttention:
    case OperatorKind::kGlu:
      break;  // on sequences only
  }
  return list.Take();
}

}  // namespace verbatim
