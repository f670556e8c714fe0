#include "trainer/range_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "base/check.h"

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
  std::vector<SegmentActivation>& kept = range.activations[task.microbatch];
  at::Tensor activation = input;
  for (const RangeSegment& segment : range.segments) {
    // A leaf of its own, so that each segment's graph ends at its boundary.
    if (!kept.empty()) activation = activation.detach().requires_grad_(activation.requires_grad());
    kept.push_back({activation, {}});
    // With a graph even where it is dropped at once: so libraries have no reason to choose another
    // kernel here than when the segment is computed again.
    activation = RunLayers(task, subnet, activation, Pass::kFirst, UsesOf(segment, range));
    if (!segment.recomputes) kept.back().output = activation;
  }
  return activation;
}

std::span<LayerUse> RangePass::UsesOf(const RangeSegment& segment, OpenRange& range) const {
  const int begin = range.segments.front().begin;
  return std::span(range.uses)
      .subspan(static_cast<std::size_t>(segment.begin - begin),
               static_cast<std::size_t>(segment.end - segment.begin));
}

at::Tensor RangePass::RunLayers(const Task& task, const SubnetRun& subnet, const at::Tensor& input,
                                Pass pass, std::span<LayerUse> uses) const {
  at::Tensor activation = input;
  for (LayerUse& use : uses) {
    const Layer& layer = *use.layer;
    OperatorContext operator_context{.parameters = use.read.parameters};
    if (pass == Pass::kFirst) ChooseBuffers(use, operator_context);
    operator_context.dropout = DropoutKey(task, layer);
    if (layer.op.tied) operator_context.tied = subnet.embedding.tensor;
    activation = ApplyLayer(layer, activation, operator_context);
    if (pass == Pass::kFirst) ReportOutput(task, layer, activation);
  }
  return activation;
}

void RangePass::ReportOutput(const Task& task, const Layer& layer, const at::Tensor& output) const {
  if (context_.probe) context_.probe->OnForward(task.seq, task.microbatch, layer, output);
  report_.Activation(task, layer, output);
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
  const at::TensorOptions options(use.read.parameters.front().device());
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
  auto kept = std::move(range.activations.extract(task.microbatch).mapped());
  at::Tensor gradient = output_gradient;
  for (std::size_t i = range.segments.size(); i-- > 0;) {
    const std::span<LayerUse> uses = UsesOf(range.segments[i], range);
    const SegmentGradients gradients =
        GradientsOf(task, subnet, std::exchange(kept[i], {}), std::exchange(gradient, {}),
                    range.segments[i], uses);
    gradient = gradients.input;
    if (i == 0 && gradient.defined()) give_input_gradient(gradient);
    if (gradients.embedding.defined()) {
      AddGradient(task, gradients.embedding, subnet.tied_gradient.tensor);
    }
    Accumulate(task, gradients.parameters, uses);
    // What comes before are frozen layers at the supernet's beginning: they have no graph at all.
    if (!gradient.defined()) return;
  }
}

RangePass::SegmentGradients RangePass::GradientsOf(const Task& task, const SubnetRun& subnet,
                                                   SegmentActivation activation,
                                                   at::Tensor output_gradient,
                                                   const RangeSegment& segment,
                                                   std::span<LayerUse> uses) const {
  SegmentGradients gradients;
  torch::autograd::variable_list inputs;
  for (const LayerUse& use : uses) {
    if (!use.layer->trainable) continue;
    inputs.insert(inputs.end(), use.read.parameters.begin(), use.read.parameters.end());
  }
  const bool has_embedding = HasTiedGradient(segment);
  const bool has_input = activation.input.requires_grad();
  if (has_embedding) inputs.push_back(subnet.embedding.tensor);
  if (has_input) inputs.push_back(activation.input);
  if (inputs.empty()) return gradients;
  if (segment.recomputes) {
    activation.output = RunLayers(task, subnet, activation.input, Pass::kAgain, uses);
  }
  torch::autograd::variable_list output_gradients;
  if (output_gradient.defined()) output_gradients.push_back(std::move(output_gradient));
  gradients.parameters = torch::autograd::grad({activation.output}, inputs, output_gradients);
  const auto take_last = [&](at::Tensor& gradient) {
    gradient = std::move(gradients.parameters.back());
    gradients.parameters.pop_back();
  };
  if (has_input) take_last(gradients.input);
  if (has_embedding) take_last(gradients.embedding);
  return gradients;
}

bool RangePass::HasTiedGradient(const RangeSegment& segment) const {
  return segment.end == context_.space.positions() && context_.space.layers().back().op.tied &&
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
