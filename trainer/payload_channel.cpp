#include "trainer/payload_channel.h"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim {
namespace {

/// NCCL gains little from more of them between two GPUs.
constexpr int kBlocksMax = 8;
constexpr int kShareOfDevice = 4;

const char* NameOf(PayloadKind kind) {
  switch (kind) {
    case PayloadKind::kForward:
      return "activations";
    case PayloadKind::kBackward:
      return "gradients";
    case PayloadKind::kLayer:
      return "layers";
  }
  return "tensors";
}

}  // namespace

std::vector<PayloadChannel> ChannelsAt(int rank, int ranks, int ranks_with_layer_channels_max) {
  std::vector<PayloadChannel> channels;
  for (const int next : {rank, rank + 1}) {
    if (next == 0 || next >= ranks) continue;
    channels.push_back({PayloadKind::kForward, next - 1, next});
    channels.push_back({PayloadKind::kBackward, next, next - 1});
  }
  for (int other = 0; ranks <= ranks_with_layer_channels_max && other < ranks; ++other) {
    if (other == rank) continue;
    channels.push_back({PayloadKind::kLayer, rank, other});
    channels.push_back({PayloadKind::kLayer, other, rank});
  }
  std::ranges::sort(channels);
  return channels;
}

int BlocksPerChannel(int multiprocessors, int channels) {
  return std::clamp(multiprocessors / kShareOfDevice / std::max(channels, 1), 1, kBlocksMax);
}

std::string Describe(const PayloadChannel& channel) {
  return fmt::format("{} from rank {} to rank {}", NameOf(channel.kind), channel.from, channel.to);
}

}  // namespace verbatim
