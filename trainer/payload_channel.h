// Which channels tensors take that go from the device of one rank to that of another. Pure.
//
// A channel is a queue from one rank to one other: what is sent on it is received in that order. A
// send ends only when its receive is executed, and holds up what follows it on its channel, nothing
// else. docs/architecture.md, "Ranks", says why no circle of waiting ranks can form.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace verbatim {

/// In one direction between two ranks, each kind has a channel of its own.
enum class PayloadKind : std::uint8_t {
  kForward,   ///< activations: from each rank to the next
  kBackward,  ///< gradients: from each rank to the one before
  kLayer,     ///< layers' versions: between any two
};

struct PayloadChannel {
  PayloadKind kind = PayloadKind::kLayer;
  int from = 0;  ///< rank
  int to = 0;    ///< another
  auto operator<=>(const PayloadChannel&) const = default;
};

/// Of more ranks layers' versions go through the host. Every channel needs a hardware queue of the
/// GPU for itself, and a GPU has 32 (CUDA_DEVICE_MAX_CONNECTIONS): so many ranks leave six of them
/// to the stages.
inline constexpr int kRanksWithLayerChannelsMax = 12;

/// All channels that begin or end at `rank`, in the order in which both of their ends count them.
std::vector<PayloadChannel> ChannelsAt(
    int rank, int ranks, int ranks_with_layer_channels_max = kRanksWithLayerChannelsMax);

/// How many blocks of threads a channel may keep on a device with so many multiprocessors and
/// channels: all of them together, waiting, leave three quarters of the device to the stages.
int BlocksPerChannel(int multiprocessors, int channels);

/// "layers from rank 0 to rank 2".
std::string Describe(const PayloadChannel& channel);

}  // namespace verbatim
