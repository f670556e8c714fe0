#include "trainer/stage.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "supernet/stream.h"
#include "trainer/tensor_digest.h"

namespace verbatim {

Stage::Stage(const RunContext& context, int index)
    : context_(context), index_(index), pass_(context) {}

void Stage::Execute(const Task& task, SubnetRun& subnet) {
  OpenRange& range = open_[task.seq];
  switch (task.kind) {
    case TaskKind::kForward:
      Forward(task, subnet, range);
      break;
    case TaskKind::kBackward:
      Backward(task, subnet, range);
      break;
    case TaskKind::kUpdate:
      Update(task, subnet, range);
      open_.erase(task.seq);
      // The last stage is done with it. Its memory is the stem's.
      if (IsFirst()) subnet.embedding.reset();
      break;
  }
}

void Stage::Forward(const Task& task, SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (task.microbatch == 0) ObserveVersions(subnet, range);
  const at::Tensor input = ForwardInput(task, subnet);
  const at::Tensor output = pass_.Forward(task, subnet, input, range);
  if (IsLast()) {
    range.activations.at(task.microbatch).back().output = MicrobatchLoss(task, subnet, output);
  } else {
    context_.transport.Send(index_ + 1, task, output.detach());
  }
  ReportActivity(task, Phase::kForward, begin_ns);
}

LayerRead Stage::Read(const Layer& layer, std::int64_t seq) const {
  std::unique_lock lock(context_.delayed_layers, std::defer_lock);
  if (layer.delay > 0) lock.lock();
  LayerRead read = ReadVersion(layer, context_.layers[layer.id], seq);
  if (context_.copies && !layer.IsVersioned() && !read.parameters.empty() && layer.delay == 0) {
    read.parameters = context_.copies->Parameters(index_, layer.id);
  }
  if (context_.probe) context_.probe->OnRead(seq, layer, read);
  return read;
}

void Stage::ObserveVersions(SubnetRun& subnet, OpenRange& range) {
  const int begin = subnet.ranges.Begin(index_);
  const int end = subnet.ranges.End(index_);
  range.segments = context_.recompute.Segments(begin, end);
  for (int position = begin; position < end; ++position) {
    const Layer& layer = context_.space.LayerAt(position, subnet.choices);
    // The forward writes batch norm's running statistics already, unless there is a delay.
    if (context_.checkpoints && layer.IsVersioned() && layer.delay == 0) {
      context_.checkpoints->BeforeChange(subnet.seq, layer);
    }
    range.uses.push_back({&layer, Read(layer, subnet.seq), {}, {}});
  }
  if (IsFirst() && context_.space.layers().back().op.tied) {
    const LayerUse& stem = range.uses.front();
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

void Stage::Backward(const Task& task, SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  at::Tensor output_gradient;
  if (!IsLast()) output_gradient = context_.transport.Receive(index_, task);
  const auto send = [&](const at::Tensor& gradient) {
    context_.transport.Send(index_ - 1, task, gradient);
  };
  pass_.Backward(task, output_gradient, send, subnet, range);
  if (IsLast() && task.microbatch == context_.spec.training.microbatches - 1) subnet.batch = {};
  ReportActivity(task, Phase::kBackward, begin_ns);
}

void Stage::Update(const Task& task, const SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (IsFirst() && subnet.tied_gradient.defined()) {
    at::Tensor& embedding = range.uses.front().gradients.front();
    embedding = at::add(embedding, subnet.tied_gradient);
  }
  for (const LayerUse& use : range.uses) {
    if (use.layer->IsVersioned()) UpdateLayer(subnet, use);
  }
  ReportActivity(task, Phase::kUpdate, begin_ns);
}

void Stage::UpdateLayer(const SubnetRun& subnet, const LayerUse& use) {
  const Layer& layer = *use.layer;
  const std::span<const at::Tensor> gradients = use.gradients;
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
