#include "trainer/range_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "base/check.h"
#include "trainer/tensor_digest.h"

namespace verbatim {
namespace {

/// One micro-batch's gradient of one parameter, added to those of the ones before it.
void AddGradient(const Task& task, const at::Tensor& gradient, at::Tensor& sum) {
  const at::NoGradGuard no_grad;
  if (task.microbatch == 0) {
    sum = gradient.contiguous();
  } else {
    sum.add_(gradient);
  }
}

}  // namespace

at::Tensor RangePass::Forward(const Task& task, const SubnetRun& subnet, const at::Tensor& input,
                              OpenRange& range) const {
  at::Tensor activation = input;
  for (LayerUse& use : range.uses) {
    const Layer& layer = *use.layer;
    OperatorContext operator_context{.parameters = use.read.parameters};
    ChooseBuffers(use, operator_context);
    operator_context.dropout = DropoutKey(task, layer);
    if (layer.op.tied) operator_context.tied = subnet.embedding;
    activation = ApplyLayer(layer, activation, operator_context);
    if (context_.probe) context_.probe->OnForward(task.seq, task.microbatch, layer, activation);
    if (context_.observer && context_.record_level == RecordLevel::kFull) {
      context_.observer->OnActivation(
          task.seq, ActivationRow{task.microbatch, layer.position, TensorDigest(activation)});
    }
  }
  range.activations[task.microbatch] = {input, activation};
  return activation;
}

void RangePass::ChooseBuffers(LayerUse& use, OperatorContext& operator_context) const {
  const Layer& layer = *use.layer;
  if (!layer.trainable || layer.buffers.empty()) return;
  if (layer.delay == 0) {
    operator_context.buffers = context_.layers[layer.id].buffers;
    return;
  }
  // Forward passes of several subnets overlap here: their order belongs to the updates. Shapes are
  // the layer's, since an update on another stage may be replacing the state meanwhile.
  std::vector<at::Tensor>& measured = use.statistics.emplace_back();
  const at::TensorOptions options(context_.device);
  for (const TensorSpec& buffer : layer.buffers) {
    measured.push_back(at::zeros(buffer.shape, options.dtype(at::kFloat)));
  }
  operator_context.buffers = measured;
  operator_context.batch_norm.momentum = 1.0;
}

RandomKey RangePass::DropoutKey(const Task& task, const Layer& layer) const {
  RandomKey key{context_.spec.seed, RandomPurpose::kDropout,
                static_cast<std::uint32_t>(task.microbatch), static_cast<std::uint32_t>(layer.id),
                static_cast<std::uint32_t>(task.seq)};
  if (context_.probe) context_.probe->OnDropoutKey(task.seq, layer, key);
  return key;
}

void RangePass::Backward(const Task& task, const at::Tensor& output_gradient,
                         const std::function<void(const at::Tensor&)>& give_input_gradient,
                         SubnetRun& subnet, OpenRange& range) const {
  const RangeActivation activation = std::move(range.activations.extract(task.microbatch).mapped());
  const bool gives_gradient = activation.input.requires_grad();
  torch::autograd::variable_list inputs;
  if (gives_gradient) inputs.push_back(activation.input);
  for (const LayerUse& use : range.uses) {
    if (!use.layer->trainable) continue;
    inputs.insert(inputs.end(), use.read.parameters.begin(), use.read.parameters.end());
  }
  if (HasTiedGradient()) inputs.push_back(subnet.embedding);
  torch::autograd::variable_list output_gradients;
  if (output_gradient.defined()) output_gradients.push_back(output_gradient);
  torch::autograd::variable_list gradients;
  // A first stage of nothing but frozen layers has no graph at all.
  if (!inputs.empty()) {
    gradients = torch::autograd::grad({activation.output}, inputs, output_gradients);
  }
  if (gives_gradient) {
    give_input_gradient(gradients.front());
    gradients.erase(gradients.begin());
  }
  if (HasTiedGradient()) {
    AddGradient(task, gradients.back(), subnet.tied_gradient);
    gradients.pop_back();
  }
  Accumulate(task, gradients, range.uses);
}

bool RangePass::HasTiedGradient() const {
  return stage_ == context_.stages - 1 && context_.space.layers().back().op.tied &&
         context_.space.layers().front().trainable;
}

void RangePass::Accumulate(const Task& task, std::span<const at::Tensor> gradients,
                           std::span<LayerUse> uses) const {
  const at::NoGradGuard no_grad;
  for (LayerUse& use : uses) {
    const Layer& layer = *use.layer;
    if (!layer.IsVersioned()) continue;
    const auto added = gradients.first(layer.parameters.size());
    gradients = gradients.subspan(added.size());
    use.gradients.resize(added.size());
    if (context_.probe &&
        context_.probe->OnGradients(task.seq, task.microbatch, layer, use.gradients, added)) {
      continue;
    }
    for (std::size_t i = 0; i < added.size(); ++i) AddGradient(task, added[i], use.gradients[i]);
  }
  VERBATIM_CHECK(gradients.empty(), "{} gradients left over", gradients.size());
}

}  // namespace verbatim
