// What goes from the device of one rank to that of another directly, beside the messages that
// announce it.
//
// A message says what was sent with it (its tensors' layouts) and goes through the network; the
// tensors themselves take a channel. Where ranks have none, tensors are part of their messages.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "trainer/device_stream.h"
#include "trainer/payload_channel.h"
#include "trainer/tensor_layout.h"

namespace verbatim {

/// The ends of this rank's channels. `first` is the device of its first stage, `last` of its last
/// one, `home` where layers are before and after training.
struct PayloadEnds {
  int rank = 0;
  int ranks = 1;
  at::Device first = at::kCPU;
  at::Device last = at::kCPU;
  at::Device home = at::kCPU;

  /// Of this rank's end of one of its channels.
  at::Device DeviceOf(const PayloadChannel& channel) const {
    switch (channel.kind) {
      case PayloadKind::kForward:
        return channel.from == rank ? last : first;
      case PayloadKind::kBackward:
        return channel.from == rank ? first : last;
      case PayloadKind::kLayer:
        break;
    }
    return home;
  }
};

/// What was received: the tensors' values are there when `ready` is reached.
struct ReceivedPayload {
  std::vector<at::Tensor> tensors;
  Mark ready;
};

/// Every rank of a run has one. Any thread, but for the order that each call asks for. Calls never
/// wait for another rank. Throws what LibTorch throws, and what it is told of a failure.
///
/// When a rank is lost, what it owed never comes: Abort lets all that waits for it go on, with
/// tensors of any values, so nothing that was computed may be told to anybody after it.
class DevicePayloads {
 public:
  virtual ~DevicePayloads() = default;

  /// Whether this kind of payload has a channel there; else it belongs into its message.
  virtual bool Has(const PayloadChannel& channel) const = 0;

  /// What rank `to` has to know to open the channels that lead to it. Once for each rank.
  virtual std::string Invite(int to) = 0;
  /// Begins to open the channels: `invitations` by rank, each what that rank's Invite gave for this
  /// one. Once, on all ranks.
  virtual Status Open(std::span<const std::string> invitations) = 0;
  /// Goes on with it. Whether all channels are open; errors: they never will be, or one broke
  /// since.
  virtual Result<bool> Poll() = 0;

  /// Sends tensors on an open channel that begins here, each once it is ready: with all that the
  /// channel carries in the order of the messages that announce them, and before those are sent.
  /// Nobody may change the tensors any more.
  virtual void Send(const PayloadChannel& channel, std::vector<HandedTensor> tensors) = 0;
  /// Receives the next ones on a channel that ends here: when the message that announces them is
  /// taken, in the order of messages.
  virtual ReceivedPayload Receive(const PayloadChannel& channel,
                                  std::span<const TensorLayout> layouts) = 0;

  /// Ends all transfers, done or not, and all that come. Does not wait.
  virtual void Abort() = 0;
};

/// Null where ranks have no channels.
using OpenPayloads = std::function<std::unique_ptr<DevicePayloads>(const PayloadEnds&)>;

}  // namespace verbatim
