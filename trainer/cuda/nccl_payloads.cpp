#include "trainer/cuda/nccl_payloads.h"

#include <ATen/cuda/CUDAContext.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/exception_text.h"
#include "base/hex.h"
#include "trainer/cuda/nccl_channel.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

/// The first that ends several communicators together: one after the other, the first may wait for
/// work on the device that the second would have to let go.
constexpr int kLeastVersion = 22200;
constexpr std::string_view kInvitation = "nccl:";
constexpr std::chrono::seconds kEndMax{10};

int VersionNumber() {
  int version = 0;
  (void)ncclGetVersion(&version);
  return version;
}

std::span<std::uint8_t> BytesOf(ncclUniqueId& id) {
  return {reinterpret_cast<std::uint8_t*>(id.internal), sizeof(id.internal)};
}

/// Ends what they do, on the device too, and frees them.
void AbortTogether(const std::vector<ncclComm_t>& communicators) {
  (void)ncclGroupStart();
  for (ncclComm_t communicator : communicators) (void)ncclCommAbort(communicator);
  (void)ncclGroupEnd();
}

class NcclPayloads : public DevicePayloads {
 public:
  NcclPayloads(const PayloadEnds& ends, std::int64_t open_timeout_ms);
  ~NcclPayloads() override;

  bool Has(const PayloadChannel& channel) const override { return channels_.contains(channel); }
  std::string Invite(int to) override;
  Status Open(std::span<const std::string> invitations) override;
  Result<bool> Poll() override;
  void Send(const PayloadChannel& channel, std::vector<HandedTensor> tensors) override {
    channels_.at(channel)->Send(std::move(tensors));
  }
  ReceivedPayload Receive(const PayloadChannel& channel,
                          std::span<const TensorLayout> layouts) override {
    return channels_.at(channel)->Receive(layouts);
  }
  void Abort() override;

 private:
  /// Of the channels that lead here from a rank.
  Status ReadInvitation(int from, std::string_view text);

  const PayloadEnds ends_;
  const std::chrono::milliseconds open_timeout_;
  std::atomic<bool> has_ended_ = false;
  std::map<PayloadChannel, std::unique_ptr<NcclChannel>> channels_;
  std::map<PayloadChannel, ncclUniqueId> ids_;
  Clock::time_point deadline_;
  bool is_open_ = false;
  std::thread ending_;
  std::future<void> ended_;
};

NcclPayloads::NcclPayloads(const PayloadEnds& ends, std::int64_t open_timeout_ms)
    : ends_(ends), open_timeout_(open_timeout_ms) {
  const std::vector<PayloadChannel> channels = ChannelsAt(ends.rank, ends.ranks);
  try {
    for (const PayloadChannel& channel : channels) {
      const int processors =
          at::cuda::getDeviceProperties(ends.DeviceOf(channel).index())->multiProcessorCount;
      const int blocks = BlocksPerChannel(processors, static_cast<int>(channels.size()));
      channels_[channel] = std::make_unique<NcclChannel>(channel, ends_, blocks, has_ended_);
    }
  } catch (...) {
    Abort();
    throw;
  }
}

NcclPayloads::~NcclPayloads() {
  // At the end of a sound run everything is done, on all ranks, and this only frees.
  Abort();
  if (!ending_.joinable()) return;
  const bool is_ended = ended_.wait_for(kEndMax) == std::future_status::ready;
  is_ended ? ending_.join() : ending_.detach();
}

std::string NcclPayloads::Invite(int to) {
  std::string text(kInvitation);
  for (const auto& [channel, end] : channels_) {
    if (channel.from != ends_.rank || channel.to != to) continue;
    ncclUniqueId& id = ids_[channel];
    CheckNccl(ncclGetUniqueId(&id));
    text += BytesToHex(BytesOf(id));
  }
  return text;
}

Status NcclPayloads::ReadInvitation(int from, std::string_view text) {
  const auto bad = [from] {
    return BadInput(fmt::format("rank {} invites to other channels than NCCL's", from));
  };
  if (!text.starts_with(kInvitation)) return bad();
  text.remove_prefix(kInvitation.size());
  for (const auto& [channel, end] : channels_) {
    if (channel.from != from) continue;
    ncclUniqueId& id = ids_[channel];
    const std::string_view hex = text.substr(0, 2 * sizeof(id.internal));
    if (!BytesFromHex(hex, BytesOf(id))) return bad();
    text.remove_prefix(hex.size());
  }
  return text.empty() ? Status{} : bad();
}

Status NcclPayloads::Open(std::span<const std::string> invitations) {
  try {
    for (int from = 0; from < ends_.ranks; ++from) {
      if (from == ends_.rank) continue;
      RETURN_IF_ERROR(ReadInvitation(from, invitations[static_cast<std::size_t>(from)]));
    }
    // All at once: each call returns, and no channel waits for another to open.
    for (const auto& [channel, end] : channels_) end->Begin(ids_.at(channel));
    deadline_ = Clock::now() + open_timeout_;
    return {};
  } catch (const std::exception& error) {
    return Failed(ExceptionText(error));
  }
}

Result<bool> NcclPayloads::Poll() {
  if (has_ended_) return false;
  std::string closed;
  for (const auto& [channel, end] : channels_) {
    try {
      if (!end->Advance() && closed.empty()) closed = Describe(channel);
    } catch (const std::exception& error) {
      return Failed(fmt::format("{}: {}", Describe(channel), ExceptionText(error)));
    }
  }
  is_open_ = is_open_ || closed.empty();
  if (is_open_ || Clock::now() < deadline_) return is_open_;
  return Failed(
      fmt::format("the channel of {} did not open in {} s", closed, open_timeout_.count() / 1000));
}

void NcclPayloads::Abort() {
  if (has_ended_.exchange(true)) return;
  std::vector<ncclComm_t> communicators;
  for (const auto& [channel, end] : channels_) {
    if (ncclComm_t communicator = end->Release()) communicators.push_back(communicator);
  }
  if (communicators.empty()) return;
  // It may wait for the device, so nobody waits for it, and it uses nothing of this object.
  std::packaged_task<void()> end([communicators] { AbortTogether(communicators); });
  ended_ = end.get_future();
  try {
    ending_ = std::thread(std::move(end));
  } catch (const std::system_error&) {  // the machine has no thread left
    AbortTogether(communicators);
  }
}

}  // namespace

std::string NcclVersion() {
  return std::to_string(VersionNumber());
}

std::string NcclObstacle() {
  const int version = VersionNumber();
  if (version >= kLeastVersion) return "";
  return fmt::format("NCCL {} is too old, 2.22 or newer is needed", version);
}

std::unique_ptr<DevicePayloads> OpenNcclPayloads(const PayloadEnds& ends,
                                                 std::int64_t open_timeout_ms) {
  const std::string obstacle = NcclObstacle();
  VERBATIM_CHECK(obstacle.empty(), "{}", obstacle);
  return std::make_unique<NcclPayloads>(ends, open_timeout_ms);
}

}  // namespace verbatim
