#include "trainer/profile.h"

#include <ATen/Context.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "trainer/layer_walk.h"
#include "trainer/operators.h"

namespace verbatim {
namespace {

/// One layer's measurements, in seconds.
struct Measurements {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> update;
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Profiler {
 public:
  Profiler(Experiment& experiment, const ProfileOptions& options)
      : experiment_(experiment),
        options_(options),
        measurements_(experiment.space.layers().size()) {}

  Result<CostTable> Run() {
    for (std::int64_t round = 0; round <= options_.repeat; ++round) {
      RETURN_IF_ERROR(MeasureAll());
      if (round > 0) continue;
      // The first round fills caches, pools of memory and the libraries' kernels.
      for (Measurements& layer : measurements_) layer = {};
    }
    return Costs();
  }

 private:
  Status MeasureAll() {
    return WalkLayers(experiment_,
                      [&](const Layer& layer, const at::Tensor& input) -> Result<at::Tensor> {
                        at::Tensor output = Measure(layer, input);
                        if (!options_.on_progress || options_.on_progress(++done_)) return output;
                        return Failed("stopped on request");
                      });
  }

  /// Forward, backward and update once; the output, cut off from the graph.
  at::Tensor Measure(const Layer& layer, const at::Tensor& input) {
    LayerState& state = experiment_.layers[layer.id];
    Measurements& measurements = measurements_[layer.id];
    at::Tensor leaf = input.detach();
    if (layer.position > 0) leaf.requires_grad_();
    OperatorContext context{.parameters = state.parameters};
    if (layer.trainable) context.buffers = state.buffers;
    context.dropout = FirstDropoutKey(experiment_, layer);
    if (layer.op.tied) context.tied = experiment_.layers.front().parameters.front();
    at::Tensor output;
    measurements.forward.push_back(Seconds([&] { output = ApplyLayer(layer, leaf, context); }));
    std::vector<at::Tensor> gradients;
    measurements.backward.push_back(MeasureBackward(layer, context, leaf, output, gradients));
    measurements.update.push_back(MeasureUpdate(layer, gradients, state));
    return output.detach();
  }

  /// `gradients` are then those of the layer's parameters.
  double MeasureBackward(const Layer& layer, const OperatorContext& context,
                         const at::Tensor& input, const at::Tensor& output,
                         std::vector<at::Tensor>& gradients) const {
    torch::autograd::variable_list inputs;
    if (layer.trainable) inputs.assign(context.parameters.begin(), context.parameters.end());
    const auto parameters = static_cast<std::ptrdiff_t>(inputs.size());
    if (input.requires_grad()) inputs.push_back(input);
    if (context.tied.defined() && context.tied.requires_grad()) inputs.push_back(context.tied);
    if (inputs.empty()) return 0.0;
    const at::Tensor output_gradient = at::ones_like(output);
    torch::autograd::variable_list all;
    const double seconds =
        Seconds([&] { all = torch::autograd::grad({output}, inputs, {output_gradient}); });
    for (std::ptrdiff_t i = 0; i < parameters; ++i) gradients.push_back(all[i].contiguous());
    return seconds;
  }

  double MeasureUpdate(const Layer& layer, const std::vector<at::Tensor>& gradients,
                       LayerState& state) const {
    if (!layer.IsVersioned()) return 0.0;
    // With a learning rate of 0 the weights stay as they are, round after round.
    const auto update = [&](LayerState& next) {
      ApplyUpdate(experiment_.spec.training.optimizer, /*learning_rate=*/0.0, gradients, next);
    };
    return Seconds([&] {
      if (layer.delay == 0) return update(state);
      LayerState copy = CopyForUpdate(state);
      update(copy);
    });
  }

  template <typename F>
  double Seconds(const F& work) const {
    Synchronize();
    const auto start = std::chrono::steady_clock::now();
    work();
    Synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void Synchronize() const {
    if (!experiment_.device.is_cuda()) return;
    at::detail::getCUDAHooks().deviceSynchronize(experiment_.device.index());
  }

  CostTable Costs() const {
    CostTable costs = AnalyticCosts(experiment_.space, experiment_.spec);
    costs.source = CostSource::kMeasured;
    for (std::size_t id = 0; id < costs.layers.size(); ++id) {
      costs.layers[id].forward = Median(measurements_[id].forward);
      costs.layers[id].backward = Median(measurements_[id].backward);
      costs.layers[id].update = Median(measurements_[id].update);
    }
    return costs;
  }

  Experiment& experiment_;
  const ProfileOptions& options_;
  std::vector<Measurements> measurements_;  ///< by layer id
  std::int64_t done_ = 0;
};

}  // namespace

Result<CostTable> MeasureCosts(Experiment& experiment, const ProfileOptions& options) {
  return Profiler(experiment, options).Run();
}

}  // namespace verbatim
