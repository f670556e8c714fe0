#include "trainer/stage.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/check.h"
#include "supernet/stream.h"
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

Stage::Stage(const RunContext& context, int index) : context_(context), index_(index) {}

void Stage::Execute(const Task& task, SubnetRun& subnet) {
  OpenSubnet& open = open_[task.seq];
  switch (task.kind) {
    case TaskKind::kForward:
      Forward(task, subnet, open);
      break;
    case TaskKind::kBackward:
      Backward(task, subnet, open);
      break;
    case TaskKind::kUpdate:
      Update(task, subnet, open);
      open_.erase(task.seq);
      break;
  }
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

LayerRead Stage::Read(const Layer& layer, std::int64_t seq) const {
  std::unique_lock lock(context_.delayed_layers, std::defer_lock);
  if (layer.delay > 0) lock.lock();
  LayerRead read = ReadVersion(layer, context_.layers[layer.id], seq);
  if (context_.probe) context_.probe->OnRead(seq, layer, read);
  return read;
}

void Stage::ObserveVersions(SubnetRun& subnet, OpenSubnet& open) {
  for (int position = subnet.ranges.Begin(index_); position < subnet.ranges.End(index_);
       ++position) {
    const Layer& layer = context_.space.LayerAt(position, subnet.choices);
    // The forward writes batch norm's running statistics already, unless there is a delay.
    if (context_.checkpoints && layer.IsVersioned() && layer.delay == 0) {
      context_.checkpoints->BeforeChange(subnet.seq, layer);
    }
    open.uses.push_back({&layer, Read(layer, subnet.seq), {}});
  }
  if (IsFirst() && context_.space.layers().back().op.tied) {
    const LayerUse& stem = open.uses.front();
    subnet.embedding = stem.read.parameters.front().detach();
    subnet.embedding.requires_grad_(stem.layer->trainable);
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

at::Tensor Stage::ForwardRange(const Task& task, const SubnetRun& subnet, OpenSubnet& open,
                               const at::Tensor& input) {
  at::Tensor activation = input;
  for (LayerUse& use : open.uses) {
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
  return activation;
}

void Stage::ChooseBuffers(LayerUse& use, OperatorContext& operator_context) const {
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
  if (!subnet.batch.labels.defined()) {  // the first stage, which draws it, is on another rank
    subnet.batch = context_.dataset.TrainingBatch(subnet.samples, context_.device);
  }
  const at::Tensor labels = subnet.batch.labels.narrow(0, rows.first, rows.size());
  const at::Tensor loss =
      at::cross_entropy_loss(logits.flatten(0, -2), labels.flatten(), /*weight=*/{},
                             at::Reduction::Sum, /*ignore_index=*/-100, training.label_smoothing)
          .div(static_cast<double>(training.batch * context_.dataset.targets()));
  const auto value = loss.item<float>();
  subnet.loss = task.microbatch == 0 ? value : subnet.loss + value;
  const bool is_whole = task.microbatch == training.microbatches - 1;
  if (is_whole && context_.observer) context_.observer->OnLoss(subnet.seq, subnet.loss);
  return loss;
}

void Stage::Backward(const Task& task, SubnetRun& subnet, OpenSubnet& open) {
  const std::int64_t begin_ns = context_.nanoseconds();
  Activation activation = std::move(open.activations.extract(task.microbatch).mapped());
  torch::autograd::variable_list inputs;
  if (!IsFirst()) inputs.push_back(activation.input);
  for (const LayerUse& use : open.uses) {
    if (!use.layer->trainable) continue;
    inputs.insert(inputs.end(), use.read.parameters.begin(), use.read.parameters.end());
  }
  if (HasTiedGradient()) inputs.push_back(subnet.embedding);
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
  if (HasTiedGradient()) {
    AddGradient(task, gradients.back(), subnet.tied_gradient);
    gradients.pop_back();
  }
  Accumulate(task, gradients, open);
  if (IsLast() && task.microbatch == context_.spec.training.microbatches - 1) subnet.batch = {};
  ReportActivity(task, Phase::kBackward, begin_ns);
}

bool Stage::HasTiedGradient() const {
  return IsLast() && context_.space.layers().back().op.tied &&
         context_.space.layers().front().trainable;
}

void Stage::Accumulate(const Task& task, std::span<const at::Tensor> gradients, OpenSubnet& open) {
  const at::NoGradGuard no_grad;
  if (task.microbatch == 0) open.gradients.resize(gradients.size());
  std::span<at::Tensor> sums = open.gradients;
  for (const LayerUse& use : open.uses) {
    const Layer& layer = *use.layer;
    if (!layer.IsVersioned()) continue;
    const std::size_t count = layer.parameters.size();
    const auto sum = sums.first(count);
    const auto added = gradients.first(count);
    sums = sums.subspan(count);
    gradients = gradients.subspan(count);
    if (context_.probe &&
        context_.probe->OnGradients(task.seq, task.microbatch, layer, sum, added)) {
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) AddGradient(task, added[i], sum[i]);
  }
}

void Stage::Update(const Task& task, const SubnetRun& subnet, OpenSubnet& open) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (IsFirst() && subnet.tied_gradient.defined()) {
    open.gradients.front() = at::add(open.gradients.front(), subnet.tied_gradient);
  }
  std::span<const at::Tensor> gradients = open.gradients;
  for (const LayerUse& use : open.uses) {
    if (!use.layer->IsVersioned()) continue;
    const std::size_t count = use.layer->parameters.size();
    UpdateLayer(subnet, use, gradients.first(count));
    gradients = gradients.subspan(count);
  }
  VERBATIM_CHECK(gradients.empty(), "{} gradients left over", gradients.size());
  ReportActivity(task, Phase::kUpdate, begin_ns);
}

void Stage::UpdateLayer(const SubnetRun& subnet, const LayerUse& use,
                        std::span<const at::Tensor> gradients) {
  const Layer& layer = *use.layer;
  LayerState& state = context_.layers[layer.id];
  LayerState copy;
  if (layer.delay > 0) {
    if (context_.checkpoints) context_.checkpoints->BeforeChange(subnet.seq, layer);
    // The asynchronous policy lets two stages update a layer at once.
    const std::lock_guard lock(context_.delayed_layers);
    copy = CopyForUpdate(state);
  }
  LayerState& next = layer.delay > 0 ? copy : state;
  AccessRow access;
  access.layer = layer.id;
  access.stage = index_;
  access.read_seq = use.read.version;
  access.base_seq = next.version;
  if (context_.probe) context_.probe->BeforeUpdate(subnet.seq, layer, gradients, next);
  AddRunningStatistics(use.statistics, next);
  ApplyUpdate(context_.spec.training.optimizer, subnet.learning_rate, gradients, next);
  next.version = subnet.seq;
  if (context_.probe) context_.probe->AfterUpdate(subnet.seq, layer, gradients, next);
  ReportAccess(subnet, layer, next, access, gradients);
  if (layer.delay == 0) return;
  const std::lock_guard lock(context_.delayed_layers);
  PublishVersion(layer, std::move(copy), state);
}

void Stage::ReportAccess(const SubnetRun& subnet, const Layer& layer, const LayerState& state,
                         AccessRow access, std::span<const at::Tensor> gradients) {
  if (!context_.observer) return;
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
