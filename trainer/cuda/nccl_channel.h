// One end of a channel between two GPUs: a communicator of two ranks, with a stream of its own.
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "trainer/device_payloads.h"

namespace verbatim {

/// Throws what NCCL says, unless the call has succeeded or goes on in the background.
void CheckNccl(ncclResult_t result, ncclComm_t communicator = nullptr);

/// Transfers are enqueued in the order of calls, in which NCCL executes them. The communicator is
/// non-blocking: a call that would wait for the other end returns, and NCCL goes on with it in a
/// thread of its own. The first transfer would (it connects the two), so a channel counts as open
/// once one has gone through; calls afterwards wait for this process's part alone.
class NcclChannel {
 public:
  /// `blocks`: of threads, that it may keep on the device. `has_ended` outlives it.
  NcclChannel(const PayloadChannel& channel, const PayloadEnds& ends, int blocks,
              const std::atomic<bool>& has_ended);
  /// After Release, on both.
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  const PayloadChannel& channel() const { return channel_; }

  /// Begins to open it, under an id that both ends know.
  void Begin(const ncclUniqueId& id);
  /// Goes on with it. Whether it is open. Throws what has failed on it, ever.
  bool Advance();

  /// Of the sending end. The channel's own thread waits for nothing but tensors' marks, on its
  /// stream, and holds nobody up.
  void Send(std::vector<HandedTensor> tensors);
  /// Of the receiving end.
  ReceivedPayload Receive(std::span<const TensorLayout> layouts);

  /// Once `has_ended` is set: no call uses the communicator any more; null where there is none.
  ncclComm_t Release();

 private:
  enum class State { kClosed, kConnecting, kGreeting, kOpen };

  bool IsSender() const { return is_sender_; }
  void Greet();
  /// Sends or receives rows of memory, as one operation. Under the mutex.
  void Transfer(std::span<const at::Tensor> rows);
  /// Until the communicator takes the next call. Under the mutex.
  void AwaitTaken() const;
  void CheckFailure() const;
  void Serve();
  void ServeUntilEnd();

  const PayloadChannel channel_;
  const bool is_sender_;
  const int blocks_;
  const at::Device device_;
  const std::atomic<bool>& has_ended_;
  const c10::cuda::CUDAStream raw_;
  const std::unique_ptr<DeviceStream> stream_;

  std::mutex mutex_;  ///< of all that follows
  ncclComm_t communicator_ = nullptr;
  State state_ = State::kClosed;
  at::Tensor greeting_;
  std::string failure_;

  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<std::vector<HandedTensor>> queue_;
  std::thread thread_;  ///< of the sending end; last, so that it starts when all else stands
};

}  // namespace verbatim
