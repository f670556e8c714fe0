#include "trainer/rank_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace verbatim {
namespace {

PayloadKind KindOf(const Task& task) {
  return task.kind == TaskKind::kForward ? PayloadKind::kForward : PayloadKind::kBackward;
}

}  // namespace

void RankLink::Send(int to, MessageKind kind, std::int64_t seq, std::string text) {
  Message message;
  message.kind = kind;
  message.task.seq = seq;
  message.text = std::move(text);
  network_.Send(to, std::move(message));
}

void RankLink::SendToOthers(MessageKind kind, const std::string& text) {
  for (int to = 0; to < ranks(); ++to) {
    if (to != rank()) Send(to, kind, 0, text);
  }
}

void RankLink::SendCounted(const PayloadChannel& channel, Message& message, TensorWriter& writer) {
  std::vector<HandedTensor> payload = writer.Finish();
  bytes_moved_ += writer.bytes();
  if (!payload.empty()) payloads_->Send(channel, std::move(payload));
  network_.Send(channel.to, std::move(message));
}

void RankLink::SendTask(int to, const Delivery& delivery, const SubnetRun& subnet) {
  const Task& task = delivery.task;
  const bool is_forward = task.kind == TaskKind::kForward;
  const PayloadChannel channel{KindOf(task), rank(), to};
  Message message;
  message.kind = MessageKind::kTask;
  message.stage = delivery.to;
  message.task = task;
  TensorWriter writer(message, GoesDirectly(channel));
  writer.Strided(context_.transport.Receive(delivery.to, task));
  if (IsTied()) {
    const HandedTensor& tied = is_forward ? subnet.embedding : subnet.tied_gradient;
    const auto last = static_cast<std::int32_t>(context_.spec.training.microbatches) - 1;
    const bool is_due = task.microbatch == (is_forward ? 0 : last);
    if (is_due && tied.tensor.defined()) writer.Tensor(tied);
  }
  SendCounted(channel, message, writer);
}

void RankLink::SendVersion(int to, const Delivery& delivery) {
  const Layer& layer = context_.space.layer(delivery.layer);
  const PayloadChannel channel{PayloadKind::kLayer, rank(), to};
  LayerState& state = context_.layers[layer.id];
  Message message;
  message.kind = MessageKind::kVersion;
  message.stage = delivery.to;
  message.task = delivery.task;
  message.layer = layer.id;
  TensorWriter writer(message, !Moves(layer) && GoesDirectly(channel));
  const std::lock_guard lock(context_.delayed_layers);
  if (delivery.is_base) {
    VERBATIM_CHECK(state.version == delivery.version, "layer {} is at version {}, not at {}",
                   layer.name, state.version, delivery.version);
    PutState(state, message, writer);
    DropSent(layer, state);
  } else if (state.version == delivery.version) {
    PutRead({state.version, state.parameters, state.written}, message, writer);
  } else {
    const auto read = std::ranges::find(state.earlier, delivery.version, &LayerRead::version);
    VERBATIM_CHECK(read != state.earlier.end(), "layer {} has no version {}", layer.name,
                   delivery.version);
    PutRead(*read, message, writer);
  }
  SendCounted(channel, message, writer);
}

void RankLink::SendLayer(int to, int layer, const LayerState& state) {
  Message message;
  message.kind = MessageKind::kLayer;
  message.layer = layer;
  TensorWriter writer(message);
  PutState(state, message, writer);
  network_.Send(to, std::move(message));
}

void RankLink::SendCapture(std::int64_t cut, const CapturedLayer& captured) {
  Message message;
  message.kind = MessageKind::kCapture;
  message.task.seq = cut;
  message.layer = captured.layer->id;
  if (captured.state.parameters.empty()) {
    message.version = captured.state.version;
  } else {
    TensorWriter writer(message);
    PutState(captured.state, message, writer);
  }
  network_.Send(0, std::move(message));
}

Result<TensorReader> RankLink::ReaderOf(const PayloadChannel& channel, const Message& message,
                                        at::Device device, Mark& ready) const {
  if (!GoesDirectly(channel)) return TensorReader(message.tensors, device);
  std::span<const SentTensor> sent = message.tensors;
  ASSIGN_OR_RETURN(const std::vector<TensorLayout> layouts, PayloadOf(sent));
  if (layouts.empty()) return TensorReader(sent, std::vector<at::Tensor>());
  ReceivedPayload received = payloads_->Receive(channel, layouts);
  ready = std::move(received.ready);
  return TensorReader(sent, std::move(received.tensors));
}

Result<ArrivedTask> RankLink::TakeTask(int from, const Message& message) const {
  const bool is_forward = message.task.kind == TaskKind::kForward;
  if (message.stage < 0 || message.stage >= context_.stages ||
      message.task.kind == TaskKind::kUpdate) {
    return BadInput(fmt::format("a task for stage {} of kind {}", message.stage,
                                static_cast<int>(message.task.kind)));
  }
  ArrivedTask arrived;
  arrived.delivery.from = is_forward ? message.stage - 1 : message.stage + 1;
  arrived.delivery.to = message.stage;
  arrived.delivery.task = message.task;
  Mark ready;
  ASSIGN_OR_RETURN(TensorReader reader, ReaderOf({KindOf(message.task), from, rank()}, message,
                                                 DeviceOf(message.stage), ready));
  ASSIGN_OR_RETURN(arrived.input.tensor, reader.Strided());
  if (IsTied() && reader.left() > 0) {
    const Layer& stem = context_.space.layers().front();
    ASSIGN_OR_RETURN(arrived.tied.tensor, reader.Tensor(at::kFloat, stem.parameters.front().shape));
    arrived.tied.tensor.requires_grad_(is_forward && stem.trainable);
  }
  RETURN_IF_ERROR(reader.End());
  arrived.input.ready = ready;
  arrived.tied.ready = ready;
  return arrived;
}

Result<ArrivedVersion> RankLink::TakeVersion(int from, const Message& message) const {
  ArrivedVersion arrived;
  arrived.delivery.kind = Delivery::Kind::kVersion;
  arrived.delivery.to = message.stage;
  arrived.delivery.task = message.task;
  arrived.delivery.layer = message.layer;
  arrived.delivery.version = message.version;
  ASSIGN_OR_RETURN(const Layer* named, LayerOf(message));
  Mark ready;
  const PayloadChannel channel{PayloadKind::kLayer, from, rank()};
  ASSIGN_OR_RETURN(TensorReader reader,
                   Moves(*named) ? TensorReader(message.tensors, at::kCPU)
                                 : ReaderOf(channel, message, DeviceOf(message.stage), ready));
  ASSIGN_OR_RETURN(arrived.layer, Take(message, std::move(reader)));
  SetWritten(ready, arrived.layer.state);
  const bool may_be_read = named->delay > 0 && message.task.kind == TaskKind::kForward;
  if (!arrived.layer.is_whole && !may_be_read) {
    return BadInput(fmt::format("only parameters of layer {}", named->name));
  }
  arrived.delivery.is_base = arrived.layer.is_whole;
  return arrived;
}

Result<ReceivedLayer> RankLink::TakeWholeLayer(const Message& message) const {
  ASSIGN_OR_RETURN(const Layer* layer, LayerOf(message));
  const at::Device home = Moves(*layer) ? at::Device(at::kCPU) : context_.devices.home();
  ASSIGN_OR_RETURN(ReceivedLayer received, Take(message, TensorReader(message.tensors, home)));
  if (!received.is_whole) return BadInput("only parameters of a layer");
  return received;
}

Result<LayerState> RankLink::TakeCapture(const Message& message) const {
  if (message.tensors.empty()) {
    RETURN_IF_ERROR(LayerOf(message));
    LayerState state;
    state.version = message.version;
    return state;
  }
  ASSIGN_OR_RETURN(ReceivedLayer received, Take(message, TensorReader(message.tensors, at::kCPU)));
  if (!received.is_whole) return BadInput("only parameters of a layer");
  return std::move(received.state);
}

Result<const Layer*> RankLink::LayerOf(const Message& message) const {
  if (message.layer < 0 || message.layer >= std::ssize(context_.space.layers()) ||
      !context_.space.layer(message.layer).IsVersioned()) {
    return BadInput(fmt::format("a version of layer {}", message.layer));
  }
  return &context_.space.layer(message.layer);
}

Result<ReceivedLayer> RankLink::Take(const Message& message, TensorReader reader) const {
  ASSIGN_OR_RETURN(const Layer* layer, LayerOf(message));
  return TakeLayer(message, *layer, context_.spec.training.optimizer, std::move(reader));
}

std::string EncodeRunEnd(const RunEnd& end) {
  return nlohmann::json{
      {"status", ToString(end.status)}, {"detail", end.detail}, {"subnets", end.subnets}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<RunEnd> DecodeRunEnd(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key, auto is) {
    return json.is_object() && json.contains(key) && (json[key].*is)();
  };
  using Json = nlohmann::json;
  if (!has("status", &Json::is_string) || !has("detail", &Json::is_string) ||
      !has("subnets", &Json::is_number_integer)) {
    return BadInput("an end of the run that says nothing");
  }
  for (const RunStatus status :
       {RunStatus::kComplete, RunStatus::kInterrupted, RunStatus::kFailed}) {
    if (json["status"] != ToString(status)) continue;
    return RunEnd{status, json["detail"].get<std::string>(), json["subnets"].get<std::int64_t>()};
  }
  return BadInput("a run that has not ended");
}

bool ClockOffset::Answer(std::int64_t now_ns, std::int64_t answer_ns) {
  if (++answers_ >= kQuestions) return false;
  const std::int64_t took_ns = now_ns - asked_ns_;
  if (took_ns < best_ns_) {
    best_ns_ = took_ns;
    offset_ns_ = answer_ns - (asked_ns_ + took_ns / 2);
  }
  return true;
}

}  // namespace verbatim
