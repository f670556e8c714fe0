#include "trainer/stage.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <mutex>
#include <utility>

#include "supernet/stream.h"

namespace verbatim {
namespace {

/// How many tasks a device may be behind its host: enough that it never waits for the host.
constexpr std::size_t kTasksBehindMax = 3;

}  // namespace

Stage::Stage(const RunContext& context, int index)
    : context_(context),
      index_(index),
      stream_(context.open_stream(context.devices.Of(index))),
      layers_(context, index, *stream_),
      report_(context, index, *stream_),
      pass_(context, report_) {
  stream_->Enter();
}

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
      if (IsFirst()) subnet.embedding = {};
      break;
  }
  KeepUp();
}

void Stage::KeepUp() {
  if (!stream_->IsBehind()) return;
  executed_.push_back(stream_->Record());
  if (executed_.size() <= kTasksBehindMax) return;
  Synchronize(executed_.front());
  executed_.pop_front();
}

void Stage::Send(int to, const Task& task, const at::Tensor& tensor) {
  // Another rank's stage takes it from where it is.
  const at::Device device = context_.devices.Of(context_.devices.Has(to) ? to : index_);
  context_.transport.Send(to, task, stream_->Give(tensor, device));
}

void Stage::Forward(const Task& task, SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (task.microbatch == 0) ObserveVersions(subnet, range);
  const at::Tensor input = ForwardInput(task, subnet);
  const at::Tensor output = pass_.Forward(task, subnet, input, range);
  if (IsLast()) {
    range.activations.at(task.microbatch).back().output = MicrobatchLoss(task, subnet, output);
  } else {
    Send(index_ + 1, task, output.detach());
  }
  report_.Activity(task, Phase::kForward, begin_ns);
}

LayerRead Stage::Read(const Layer& layer, std::int64_t seq) {
  LayerRead read = layers_.Read(layer, seq);
  if (!context_.probe) return read;
  std::unique_lock lock(context_.delayed_layers, std::defer_lock);
  if (layer.delay > 0) lock.lock();
  context_.probe->OnRead(seq, layer, read);
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
  if (!context_.space.layers().back().op.tied) return;
  if (IsFirst()) {
    const LayerUse& stem = range.uses.front();
    at::Tensor embedding = stem.read.parameters.front().detach();
    embedding.requires_grad_(stem.layer->trainable);
    subnet.embedding = {std::move(embedding), stream_->Record()};
  }
  if (IsLast()) {
    const bool is_trained = subnet.embedding.tensor.requires_grad();
    subnet.embedding = {stream_->Take(subnet.embedding).requires_grad_(is_trained), nullptr};
  }
}

at::Tensor Stage::ForwardInput(const Task& task, SubnetRun& subnet) {
  if (!IsFirst()) {
    // A leaf of its own, so that each stage's graph ends at its boundary.
    return stream_->Take(context_.transport.Receive(index_, task)).detach().requires_grad_();
  }
  if (task.microbatch == 0) {
    const Batch batch = context_.dataset.TrainingBatch(subnet.samples, context_.devices.Of(index_));
    report_.Batch(subnet.seq, batch);
    subnet.inputs = batch.inputs;
    subnet.labels = {batch.labels, stream_->Record()};
  }
  const TrainingSpec& training = context_.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, task.microbatch);
  return subnet.inputs.narrow(0, rows.first, rows.size());
}

at::Tensor Stage::MicrobatchLoss(const Task& task, SubnetRun& subnet, const at::Tensor& logits) {
  const TrainingSpec& training = context_.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, task.microbatch);
  if (!subnet.labels.tensor.defined()) {  // the first stage, which draws it, is on another rank
    const at::Device device = context_.devices.Of(index_);
    subnet.labels = {context_.dataset.TrainingBatch(subnet.samples, device).labels, nullptr};
  }
  if (task.microbatch == 0) subnet.labels = {stream_->Take(subnet.labels), nullptr};
  const at::Tensor labels = subnet.labels.tensor.narrow(0, rows.first, rows.size());
  const at::Tensor loss =
      at::cross_entropy_loss(logits.flatten(0, -2), labels.flatten(), /*weight=*/{},
                             at::Reduction::Sum, /*ignore_index=*/-100, training.label_smoothing)
          .div(static_cast<double>(training.batch * context_.dataset.targets()));
  report_.Loss(task, loss, subnet);
  return loss;
}

void Stage::Backward(const Task& task, SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  at::Tensor output_gradient;
  if (!IsLast()) output_gradient = stream_->Take(context_.transport.Receive(index_, task));
  const auto send = [&](const at::Tensor& gradient) { Send(index_ - 1, task, gradient); };
  pass_.Backward(task, output_gradient, send, subnet, range);
  if (IsLast() && task.microbatch == context_.spec.training.microbatches - 1) {
    subnet.inputs.reset();
    subnet.labels = {};
    subnet.tied_gradient.ready = stream_->Record();
  }
  report_.Activity(task, Phase::kBackward, begin_ns);
}

void Stage::Update(const Task& task, const SubnetRun& subnet, OpenRange& range) {
  const std::int64_t begin_ns = context_.nanoseconds();
  if (IsFirst() && subnet.tied_gradient.tensor.defined()) {
    at::Tensor& embedding = range.uses.front().gradients.front();
    embedding = at::add(embedding, stream_->Take(subnet.tied_gradient));
  }
  for (const LayerUse& use : range.uses) {
    if (use.layer->IsVersioned()) UpdateLayer(subnet, use);
  }
  report_.Activity(task, Phase::kUpdate, begin_ns);
}

void Stage::UpdateLayer(const SubnetRun& subnet, const LayerUse& use) {
  const Layer& layer = *use.layer;
  const std::span<const at::Tensor> gradients = use.gradients;
  LayerState& state = context_.layers[layer.id];
  LayerState copy;
  if (layer.delay > 0) {
    if (context_.checkpoints) context_.checkpoints->BeforeChange(subnet.seq, layer);
    copy = layers_.TakeForUpdate(layer);
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
  report_.Access(subnet.seq, layer, next, access, gradients);
  next.written = stream_->Record();
  if (layer.delay == 0) return;
  const std::lock_guard lock(context_.delayed_layers);
  PublishVersion(layer, std::move(copy), state);
}

}  // namespace verbatim
