#include "supernet/costs.h"

#include "supernet/operator_costs.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

constexpr std::int64_t kBytesPerElement = 4;  // float32
/// A backward pass multiplies twice where the forward pass does once: for the input's gradient and
/// for the weights'.
constexpr double kBackwardPerForward = 2.0;

std::int64_t Elements(const std::vector<TensorSpec>& tensors) {
  std::int64_t elements = 0;
  for (const TensorSpec& tensor : tensors) {
    std::int64_t size = 1;
    for (const std::int64_t extent : tensor.shape) size *= extent;
    elements += size;
  }
  return elements;
}

struct OptimizerWork {
  double operations;    ///< per parameter element
  std::int64_t states;  ///< tensors of the parameter's size
};

OptimizerWork OptimizerWorkOf(const OptimizerSpec& optimizer) {
  const double decay = optimizer.weight_decay > 0 ? 2 : 0;
  if (optimizer.kind != OptimizerKind::kSgd) return {12 + decay, 2};
  if (optimizer.momentum == 0) return {2 + decay, 0};
  return {4 + decay + (optimizer.nesterov ? 2 : 0), 1};
}

LayerCost AnalyticCost(const Layer& layer, const Spec& spec, std::int64_t rows) {
  const OperatorWork work = WorkOf(layer);
  const OptimizerWork optimizer = OptimizerWorkOf(spec.training.optimizer);
  const std::int64_t parameters = Elements(layer.parameters);
  // A skip hands its input on: whoever takes it counts it.
  const bool keeps_input = layer.op.kind != OperatorKind::kSkip;
  const double kept = work.kept + (keeps_input ? static_cast<double>(layer.input.Elements()) : 0);
  const auto samples = static_cast<double>(rows);
  LayerCost cost;
  cost.forward = work.operations * samples;
  cost.backward = kBackwardPerForward * cost.forward;
  cost.activation_bytes = static_cast<std::int64_t>(kept) * kBytesPerElement * rows;
  cost.output_bytes = layer.output.Elements() * kBytesPerElement * rows;
  cost.parameter_bytes = (parameters + Elements(layer.buffers)) * kBytesPerElement;
  if (layer.IsVersioned()) {
    cost.update = optimizer.operations * static_cast<double>(parameters);
    cost.optimizer_bytes = optimizer.states * parameters * kBytesPerElement;
  }
  return cost;
}

}  // namespace

CostTable AnalyticCosts(const SearchSpace& space, const Spec& spec) {
  const TrainingSpec& training = spec.training;
  const std::int64_t rows = MicrobatchRows(training.batch, training.microbatches, 0).size();
  CostTable costs{.source = CostSource::kAnalytic, .layers = {}};
  costs.layers.reserve(space.layers().size());
  for (const Layer& layer : space.layers()) costs.layers.push_back(AnalyticCost(layer, spec, rows));
  return costs;
}

CostTable EqualCosts(const SearchSpace& space, const Spec& spec) {
  const TrainingSpec& training = spec.training;
  const std::int64_t rows = MicrobatchRows(training.batch, training.microbatches, 0).size();
  const double share = static_cast<double>(rows) / static_cast<double>(training.batch);
  CostTable costs = AnalyticCosts(space, spec);
  costs.source = CostSource::kEqual;
  for (const Layer& layer : space.layers()) {
    LayerCost& cost = costs.layers[static_cast<std::size_t>(layer.id)];
    const bool is_block = layer.position > 0 && layer.position < space.positions() - 1;
    cost.forward = is_block ? share : 0.0;
    cost.backward = kBackwardPerForward * cost.forward;
    cost.update = 0.0;
  }
  return costs;
}

}  // namespace verbatim
