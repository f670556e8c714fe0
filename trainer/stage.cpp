#include "trainer/stage.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/check.h"
#include "supernet/stream.h"
#include "trainer/operators.h"
#include "trainer/tensor_digest.h"

namespace verbatim {

Stage::Stage(const RunContext& context, int index) : context_(context), index_(index) {}

void Stage::Execute(const Task& task, SubnetRun& subnet) {
  OpenSubnet& open = open_[task.seq];
  if (task.kind == TaskKind::kForward) {
    Forward(task, subnet, open);
    return;
  }
  Backward(task, subnet, open);
  if (task.microbatch == context_.spec.training.microbatches - 1) {
    Update(subnet, open);
    open_.erase(task.seq);
  }
}

std::vector<const Layer*> Stage::RangeLayers(const SubnetRun& subnet) const {
  const StageRanges& ranges = context_.partition.Ranges(subnet.choices);
  std::vector<const Layer*> layers;
  for (int position = ranges.Begin(index_); position < ranges.End(index_); ++position) {
    layers.push_back(&context_.space.LayerAt(position, subnet.choices));
  }
  return layers;
}

void Stage::Forward(const Task& task, SubnetRun& subnet, OpenSubnet& open) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (task.microbatch == 0) ObserveVersions(subnet, open);
  Activation activation;
  activation.input = ForwardInput(task, subnet);
  activation.output = ForwardRange(task, subnet, open, activation.input);
  if (IsLast()) {
    activation.output = MicrobatchLoss(task, subnet, activation.output);
  } else {
    context_.transport.Send(index_ + 1, task, activation.output.detach());
  }
  open.activations[task.microbatch] = std::move(activation);
  ReportActivity(task, Phase::kForward, begin_ns);
}

void Stage::ObserveVersions(const SubnetRun& subnet, OpenSubnet& open) {
  for (const Layer* layer : RangeLayers(subnet)) {
    const LayerState& state = context_.layers[layer->id];
    LayerRead& read = open.reads.emplace_back(LayerRead{state.version, state.parameters});
    if (context_.probe) context_.probe->OnRead(subnet.seq, *layer, read);
  }
}

at::Tensor Stage::ForwardInput(const Task& task, SubnetRun& subnet) {
  if (!IsFirst()) {
    // A leaf of its own, so that each stage's graph ends at its boundary.
    return context_.transport.Receive(index_, task).detach().requires_grad_();
  }
  if (task.microbatch == 0) {
    subnet.batch = context_.dataset.TrainingBatch(subnet.samples, context_.device);
    if (context_.observer) context_.observer->OnBatch(subnet.seq, BatchDigest(subnet.batch));
  }
  const TrainingSpec& training = context_.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, task.microbatch);
  return subnet.batch.inputs.narrow(0, rows.first, rows.size());
}

at::Tensor Stage::ForwardRange(const Task& task, const SubnetRun& subnet, const OpenSubnet& open,
                               const at::Tensor& input) {
  at::Tensor activation = input;
  const std::vector<const Layer*> layers = RangeLayers(subnet);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    OperatorContext operator_context{.parameters = open.reads[i].parameters};
    if (layer.trainable) operator_context.buffers = context_.layers[layer.id].buffers;
    operator_context.dropout = DropoutKey(task, layer);
    activation = ApplyLayer(layer, activation, operator_context);
    if (context_.probe) context_.probe->OnForward(task.seq, task.microbatch, layer, activation);
    if (context_.observer && context_.record_level == RecordLevel::kFull) {
      context_.observer->OnActivation(
          task.seq, ActivationRow{task.microbatch, layer.position, TensorDigest(activation)});
    }
  }
  return activation;
}

RandomKey Stage::DropoutKey(const Task& task, const Layer& layer) const {
  RandomKey key{context_.spec.seed, RandomPurpose::kDropout,
                static_cast<std::uint32_t>(task.microbatch), static_cast<std::uint32_t>(layer.id),
                static_cast<std::uint32_t>(task.seq)};
  if (context_.probe) context_.probe->OnDropoutKey(task.seq, layer, key);
  return key;
}

at::Tensor Stage::MicrobatchLoss(const Task& task, SubnetRun& subnet, const at::Tensor& logits) {
  const TrainingSpec& training = context_.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, task.microbatch);
  const at::Tensor labels = subnet.batch.labels.narrow(0, rows.first, rows.size());
  const at::Tensor loss = at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Sum)
                              .div(static_cast<double>(training.batch));
  const auto value = loss.item<float>();
  subnet.loss = task.microbatch == 0 ? value : subnet.loss + value;
  const bool is_whole = task.microbatch == training.microbatches - 1;
  if (is_whole && context_.observer) context_.observer->OnLoss(subnet.seq, subnet.loss);
  return loss;
}

void Stage::Backward(const Task& task, const SubnetRun& subnet, OpenSubnet& open) {
  const std::int64_t begin_ns = context_.nanoseconds();
  Activation activation = std::move(open.activations.extract(task.microbatch).mapped());
  torch::autograd::variable_list inputs;
  if (!IsFirst()) inputs.push_back(activation.input);
  const std::vector<const Layer*> layers = RangeLayers(subnet);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]->trainable) continue;
    const auto& parameters = open.reads[i].parameters;
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  }
  torch::autograd::variable_list output_gradients;
  if (!IsLast()) output_gradients.push_back(context_.transport.Receive(index_, task));
  torch::autograd::variable_list gradients;
  // A first stage of nothing but frozen layers has no graph at all.
  if (!inputs.empty()) {
    gradients = torch::autograd::grad({activation.output}, inputs, output_gradients);
  }
  if (!IsFirst()) {
    context_.transport.Send(index_ - 1, task, gradients.front());
    gradients.erase(gradients.begin());
  }
  Accumulate(task, subnet, gradients, open);
  ReportActivity(task, Phase::kBackward, begin_ns);
}

void Stage::Accumulate(const Task& task, const SubnetRun& subnet,
                       std::span<const at::Tensor> gradients, OpenSubnet& open) {
  const at::NoGradGuard no_grad;
  if (task.microbatch == 0) open.gradients.resize(gradients.size());
  std::span<at::Tensor> sums = open.gradients;
  for (const Layer* layer : RangeLayers(subnet)) {
    if (!layer->IsVersioned()) continue;
    const std::size_t count = layer->parameters.size();
    const auto sum = sums.first(count);
    const auto added = gradients.first(count);
    sums = sums.subspan(count);
    gradients = gradients.subspan(count);
    if (context_.probe &&
        context_.probe->OnGradients(task.seq, task.microbatch, *layer, sum, added)) {
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (task.microbatch == 0) {
        sum[i] = added[i].contiguous();
      } else {
        sum[i].add_(added[i]);
      }
    }
  }
}

void Stage::Update(SubnetRun& subnet, OpenSubnet& open) {
  const std::int64_t begin_ns = context_.nanoseconds();
  std::span<const at::Tensor> gradients = open.gradients;
  const std::vector<const Layer*> layers = RangeLayers(subnet);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    if (!layer.IsVersioned()) continue;
    LayerState& state = context_.layers[layer.id];
    const auto layer_gradients = gradients.first(layer.parameters.size());
    gradients = gradients.subspan(layer.parameters.size());
    AccessRow access;
    access.layer = layer.id;
    access.stage = index_;
    access.read_seq = open.reads[i].version;
    access.base_seq = state.version;
    if (context_.probe) context_.probe->BeforeUpdate(subnet.seq, layer, layer_gradients, state);
    ApplyUpdate(context_.spec.training.optimizer, subnet.learning_rate, layer_gradients, state);
    state.version = subnet.seq;
    if (context_.probe) context_.probe->AfterUpdate(subnet.seq, layer, layer_gradients, state);
    ReportAccess(subnet, layer, access, layer_gradients);
  }
  VERBATIM_CHECK(gradients.empty(), "{} gradients left over", gradients.size());
  if (IsLast()) subnet.batch = {};
  const auto last = static_cast<std::int32_t>(context_.spec.training.microbatches - 1);
  ReportActivity(Task{TaskKind::kBackward, subnet.seq, last}, Phase::kUpdate, begin_ns);
}

void Stage::ReportAccess(const SubnetRun& subnet, const Layer& layer, AccessRow access,
                         std::span<const at::Tensor> gradients) {
  if (!context_.observer) return;
  const LayerState& state = context_.layers[layer.id];
  if (context_.record_level != RecordLevel::kLosses) {
    access.weights = WeightsDigest(layer, state);
    access.optimizer_state = OptimizerStateDigest(layer, context_.spec.training.optimizer, state);
  }
  if (context_.record_level == RecordLevel::kFull) {
    access.gradients = GradientsDigest(layer, gradients);
  }
  context_.observer->OnAccess(subnet.seq, access);
}

void Stage::ReportActivity(const Task& task, Phase phase, std::int64_t begin_ns) {
  if (!context_.observer) return;
  context_.observer->OnActivity(
      task.seq, ActivityRow{index_, task.microbatch, phase, begin_ns, context_.nanoseconds()});
}

}  // namespace verbatim
