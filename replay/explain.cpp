#include "replay/explain.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <memory>

#include "recorder/content_digest.h"
#include "replay/tensor_capture.h"

namespace verbatim {
namespace {

/// Keeps the content of one subnet.
class ContentSink : public ReexecutionSink {
 public:
  explicit ContentSink(std::int64_t seq) : seq_(seq) {}
  bool OnEnvironment(const std::vector<EnvironmentRow>&) override { return true; }
  void OnDataset(const Digest&) override {}
  void OnLayers(const std::vector<LayerRow>&) override {}
  bool OnSubnet(const SubnetRow& subnet) override {
    if (subnet.seq == seq_) content = ContentLeaf(subnet);
    return subnet.seq < seq_;
  }
  void OnEvaluations(const std::vector<EvaluationRow>&) override {}

  Hash256 content;

 private:
  std::int64_t seq_;
};

/// Executes a side, keeping the subnet's tensors; whether it gave what its record holds.
Result<bool> Capture(const ExplainSide& side, std::int64_t seq, TensorCapture& capture) {
  ContentSink sink(seq);
  ReexecuteOptions options = side.options;
  options.probe = &capture;
  RETURN_IF_ERROR(Reexecute(side.run, options, sink));
  return sink.content == side.recorded_content;
}

std::vector<std::int64_t> IndexOf(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

/// Compares bits: -0 differs from 0, and a NaN equals itself.
std::optional<TensorDifference> Compare(const at::Tensor& left, const at::Tensor& right) {
  TensorDifference difference;
  difference.shape = left.sizes().vec();
  difference.elements = left.numel();
  if (left.sizes() != right.sizes()) return difference;
  const float* a = left.const_data_ptr<float>();
  const float* b = right.const_data_ptr<float>();
  for (std::int64_t i = 0; i < left.numel(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (difference.elements_different++ == 0) {
      difference.index = IndexOf(i, difference.shape);
      difference.left = a[i];
      difference.right = b[i];
    }
    const double distance = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    // A NaN stays: it is greater than nothing, and nothing is greater than it.
    if (distance > difference.largest_difference || std::isnan(distance)) {
      difference.largest_difference = distance;
    }
  }
  if (difference.elements_different == 0) return std::nullopt;
  return difference;
}

std::optional<TensorDifference> Located(std::optional<TensorDifference> difference,
                                        const Layer& layer, Phase phase, std::string tensor) {
  if (!difference) return std::nullopt;
  difference->phase = phase;
  difference->layer_name = layer.name;
  difference->op = Describe(layer.op);
  difference->tensor = std::move(tensor);
  return difference;
}

std::optional<TensorDifference> CompareOutputs(const TensorCapture& left,
                                               const TensorCapture& right) {
  for (const auto& [key, output] : left.outputs()) {
    const auto other = right.outputs().find(key);
    if (other == right.outputs().end()) continue;
    auto difference = Located(Compare(output, other->second), left.layers().at(key.second),
                              Phase::kForward, fmt::format("output of micro-batch {}", key.first));
    if (difference) return difference;
  }
  return std::nullopt;
}

std::optional<TensorDifference> CompareTensors(const std::vector<CapturedTensor>& left,
                                               const std::vector<CapturedTensor>& right,
                                               const Layer& layer, Phase phase) {
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    auto difference = Located(Compare(left[i].tensor, right[i].tensor), layer, phase, left[i].name);
    if (difference) return difference;
  }
  return std::nullopt;
}

std::optional<TensorDifference> CompareUpdate(const CapturedUpdate& left,
                                              const CapturedUpdate& right, const Layer& layer) {
  auto difference = CompareTensors(left.gradients, right.gradients, layer, Phase::kBackward);
  if (!difference) difference = CompareTensors(left.weights, right.weights, layer, Phase::kUpdate);
  if (!difference) {
    difference = CompareTensors(left.optimizer_state, right.optimizer_state, layer, Phase::kUpdate);
  }
  return difference;
}

/// Forward order, then from the head down as the backward pass goes.
std::optional<TensorDifference> FirstDifference(const TensorCapture& left,
                                                const TensorCapture& right) {
  if (auto difference = CompareOutputs(left, right)) return difference;
  for (auto update = left.updates().rbegin(); update != left.updates().rend(); ++update) {
    const auto other = right.updates().find(update->first);
    if (other == right.updates().end()) continue;
    auto difference = CompareUpdate(update->second, other->second, left.layers().at(update->first));
    if (difference) return difference;
  }
  return std::nullopt;
}

}  // namespace

Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right, std::int64_t seq) {
  TensorCapture left_capture(seq);
  TensorCapture right_capture(seq);
  Explanation explanation;
  explanation.seq = seq;
  explanation.left_policy = left.options.policy;
  explanation.right_policy = right.options.policy;
  ASSIGN_OR_RETURN(explanation.left_reproduced, Capture(left, seq, left_capture));
  ASSIGN_OR_RETURN(explanation.right_reproduced, Capture(right, seq, right_capture));
  explanation.first = FirstDifference(left_capture, right_capture);
  return explanation;
}

}  // namespace verbatim
