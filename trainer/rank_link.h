// A rank's end of the network: what the pipeline tells other ranks, and what they tell it, with the
// tensors that travel along.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "recorder/rank_report.h"
#include "schedule/rank_scheduler.h"
#include "trainer/device_payloads.h"
#include "trainer/layer_message.h"
#include "trainer/ranks/network.h"
#include "trainer/run_context.h"
#include "trainer/subnet_run.h"
#include "trainer/tensor_message.h"

namespace verbatim {

/// A task's input from another rank.
struct ArrivedTask {
  Delivery delivery;
  HandedTensor input;  ///< activation or gradient
  /// Of a supernet whose head is tied to its stem: the embedding, with the first forward, or its
  /// gradient, with the last backward. Ranks between the first and the last pass it on.
  HandedTensor tied;
};

/// A layer's version from another rank, for a subnet.
struct ArrivedVersion {
  Delivery delivery;
  ReceivedLayer layer;
};

/// How a run ended, as rank 0 tells the others.
struct RunEnd {
  RunStatus status = RunStatus::kComplete;
  std::string detail;
  std::int64_t subnets = 0;
};

/// Sends come with the pipeline's lock held, so that messages to one rank keep the order of the
/// decisions that they tell of; Take… without.
class RankLink {
 public:
  /// References outlive it. `context`'s members need only stand at the first call. `payloads`:
  /// null where tensors are part of their messages.
  RankLink(Network& network, const RunContext& context, DevicePayloads* payloads)
      : network_(network), context_(context), payloads_(payloads) {}

  int rank() const { return network_.rank(); }
  int ranks() const { return network_.ranks(); }
  /// "rank 2 (host b, process 4711)".
  std::string NameOf(int rank) const { return Describe(network_.NameOf(rank)); }

  /// Sends a message of this kind, about this subnet, with this text.
  void Send(int to, MessageKind kind, std::int64_t seq = 0, std::string text = {});
  void SendToOthers(MessageKind kind, const std::string& text = {});
  void SendTask(int to, const Delivery& delivery, const SubnetRun& subnet);
  /// A version that the subnet updates leaves this rank for good.
  void SendVersion(int to, const Delivery& delivery);
  /// A whole state whose tensors do not change any more.
  void SendLayer(int to, int layer, const LayerState& state);

  /// A layer of the checkpoint at `cut`; without tensors where they have been sent before. Needs no
  /// lock.
  void SendCapture(std::int64_t cut, const CapturedLayer& captured);

  /// kBadInput where the message is not what its kind says. In the order in which messages of one
  /// rank arrive.
  Result<ArrivedTask> TakeTask(int from, const Message& message) const;
  Result<ArrivedVersion> TakeVersion(int from, const Message& message) const;
  Result<ReceivedLayer> TakeWholeLayer(const Message& message) const;
  /// On the CPU; has no tensors where the message has none.
  Result<LayerState> TakeCapture(const Message& message) const;

  /// Payload of tasks and versions that this rank has sent.
  std::int64_t bytes_moved() const { return bytes_moved_; }

 private:
  bool IsTied() const { return context_.space.layers().back().op.tied; }
  /// Of a stage that a message names, or of any where it is not this rank's.
  at::Device DeviceOf(int stage) const {
    return context_.devices.Has(stage) ? context_.devices.Of(stage) : context_.devices.home();
  }
  /// Whether a layer is at home, on the host, when it comes or goes.
  bool Moves(const Layer& layer) const { return context_.copies && layer.delay == 0; }
  Result<const Layer*> LayerOf(const Message& message) const;
  Result<ReceivedLayer> Take(const Message& message, TensorReader reader) const;
  bool GoesDirectly(const PayloadChannel& channel) const {
    return payloads_ != nullptr && payloads_->Has(channel);
  }
  void SendCounted(const PayloadChannel& channel, Message& message, TensorWriter& writer);
  /// Of the tensors that came with a message on this channel, or in it, on `device`. Sets `ready`.
  Result<TensorReader> ReaderOf(const PayloadChannel& channel, const Message& message,
                                at::Device device, Mark& ready) const;

  Network& network_;
  const RunContext& context_;
  DevicePayloads* const payloads_;
  std::int64_t bytes_moved_ = 0;
};

std::string EncodeRunEnd(const RunEnd& end);
Result<RunEnd> DecodeRunEnd(const std::string& text);

/// By how much this rank's clock is behind rank 0's, from a few questions and answers: the answer
/// that came soonest is the best. The last question asks nothing: it says that this rank has begun.
class ClockOffset {
 public:
  static constexpr int kQuestions = 4;

  void Ask(std::int64_t now_ns) { asked_ns_ = now_ns; }
  /// What rank 0's clock said. Whether to ask again.
  bool Answer(std::int64_t now_ns, std::int64_t answer_ns);
  std::int64_t nanoseconds() const { return offset_ns_.load(std::memory_order_relaxed); }

 private:
  std::int64_t asked_ns_ = 0;
  std::int64_t best_ns_ = INT64_MAX;
  int answers_ = 0;
  std::atomic<std::int64_t> offset_ns_{0};
};

}  // namespace verbatim
