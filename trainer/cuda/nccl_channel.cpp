#include "trainer/cuda/nccl_channel.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/exception_text.h"

namespace verbatim {
namespace {

/// Places in a channel's communicator.
constexpr int kSender = 0;
constexpr int kReceiver = 1;

/// Not of LibTorch's pool, which deals 32 out in turn: two channels could get one. Never given
/// back, for the allocator remembers the streams that its memory was used on.
c10::cuda::CUDAStream MakeStream(at::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  cudaStream_t stream = nullptr;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return c10::cuda::getStreamFromExternal(stream, device.index());
}

/// Those that hold anything: the others take no part in a transfer, on either end.
void AddRow(const at::Tensor& tensor, std::vector<at::Tensor>& rows) {
  at::Tensor row = ElementsOf(tensor);
  if (row.numel() > 0) rows.push_back(std::move(row));
}

}  // namespace

void CheckNccl(ncclResult_t result, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const detail = ncclGetLastError(communicator);
  throw std::runtime_error(fmt::format("NCCL: {}{}{}", ncclGetErrorString(result),
                                       detail && *detail ? ": " : "", detail ? detail : ""));
}

NcclChannel::NcclChannel(const PayloadChannel& channel, const PayloadEnds& ends, int blocks,
                         const std::atomic<bool>& has_ended)
    : channel_(channel),
      is_sender_(channel.from == ends.rank),
      blocks_(blocks),
      device_(ends.DeviceOf(channel)),
      has_ended_(has_ended),
      raw_(MakeStream(device_)),
      stream_(AdoptDeviceStream(raw_.unwrap())) {
  if (is_sender_) thread_ = std::thread([this] { Serve(); });
}

NcclChannel::~NcclChannel() {
  VERBATIM_CHECK(has_ended_ && communicator_ == nullptr, "{} is open", Describe(channel_));
  if (thread_.joinable()) thread_.join();
}

void NcclChannel::Begin(const ncclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  VERBATIM_CHECK(state_ == State::kClosed, "{} opened twice", Describe(channel_));
  const c10::cuda::CUDAGuard guard(device_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.minCTAs = 1;
  config.maxCTAs = blocks_;
  state_ = State::kConnecting;
  CheckNccl(
      ncclCommInitRankConfig(&communicator_, 2, id, IsSender() ? kSender : kReceiver, &config),
      communicator_);
}

void NcclChannel::CheckFailure() const {
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

bool NcclChannel::Advance() {
  const std::lock_guard lock(mutex_);
  CheckFailure();
  if (has_ended_ || state_ == State::kClosed) return false;
  ncclResult_t result = ncclSuccess;
  CheckNccl(ncclCommGetAsyncError(communicator_, &result), communicator_);
  CheckNccl(result, communicator_);
  if (state_ == State::kOpen) return true;
  if (result == ncclInProgress) return false;
  if (state_ == State::kConnecting) {
    Greet();
    return false;
  }
  const cudaError_t greeted = cudaStreamQuery(raw_.stream());
  if (greeted == cudaErrorNotReady) {
    (void)cudaGetLastError();  // else the next launch would be blamed for it
    return false;
  }
  C10_CUDA_CHECK(greeted);
  greeting_.reset();
  state_ = State::kOpen;
  return true;
}

void NcclChannel::Greet() {
  const c10::cuda::CUDAStreamGuard guard(raw_.unwrap());
  state_ = State::kGreeting;
  greeting_ = at::empty({1}, at::TensorOptions().dtype(at::kByte).device(device_));
  // The first call waits for the other end: Advance sees when it was taken.
  Transfer({&greeting_, 1});
}

void NcclChannel::Transfer(std::span<const at::Tensor> rows) {
  if (rows.empty()) return;
  CheckNccl(ncclGroupStart());
  ncclResult_t result = ncclSuccess;
  for (const at::Tensor& row : rows) {
    const ncclResult_t one = IsSender() ? ncclSend(row.const_data_ptr(), row.nbytes(), ncclUint8,
                                                   kReceiver, communicator_, raw_.stream())
                                        : ncclRecv(row.mutable_data_ptr(), row.nbytes(), ncclUint8,
                                                   kSender, communicator_, raw_.stream());
    if (result == ncclSuccess || result == ncclInProgress) result = one;
  }
  const ncclResult_t ended = ncclGroupEnd();  // in any case: groups nest
  CheckNccl(result, communicator_);
  CheckNccl(ended, communicator_);
}

void NcclChannel::AwaitTaken() const {
  while (true) {
    if (has_ended_) throw std::runtime_error("the run has ended");
    ncclResult_t result = ncclSuccess;
    CheckNccl(ncclCommGetAsyncError(communicator_, &result), communicator_);
    CheckNccl(result, communicator_);
    if (result == ncclSuccess) return;
    std::this_thread::yield();
  }
}

void NcclChannel::Send(std::vector<HandedTensor> tensors) {
  VERBATIM_CHECK(IsSender(), "{} ends here", Describe(channel_));
  const std::lock_guard lock(queue_mutex_);
  queue_.push_back(std::move(tensors));
  queued_.notify_one();
}

ReceivedPayload NcclChannel::Receive(std::span<const TensorLayout> layouts) {
  VERBATIM_CHECK(!IsSender(), "{} begins here", Describe(channel_));
  const std::lock_guard lock(mutex_);
  CheckFailure();
  if (has_ended_) throw std::runtime_error("the run has ended");
  VERBATIM_CHECK(state_ == State::kOpen, "{} is not open", Describe(channel_));
  // Memory that was freed is handed out in the order of its stream: a later transfer comes later.
  const c10::cuda::CUDAStreamGuard guard(raw_.unwrap());
  ReceivedPayload received;
  std::vector<at::Tensor> rows;
  for (const TensorLayout& layout : layouts) {
    received.tensors.push_back(AllocateAlike(layout, device_));
    AddRow(received.tensors.back(), rows);
  }
  Transfer(rows);
  AwaitTaken();
  received.ready = stream_->Record();
  return received;
}

ncclComm_t NcclChannel::Release() {
  VERBATIM_CHECK(has_ended_, "{} is in use", Describe(channel_));
  {
    const std::lock_guard lock(queue_mutex_);
    queued_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  return std::exchange(communicator_, nullptr);
}

void NcclChannel::Serve() {
  try {
    ServeUntilEnd();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failure_ = ExceptionText(error);
  }
}

void NcclChannel::ServeUntilEnd() {
  stream_->Enter();
  while (true) {
    std::vector<HandedTensor> tensors;
    {
      std::unique_lock lock(queue_mutex_);
      queued_.wait(lock, [this] { return has_ended_ || !queue_.empty(); });
      if (has_ended_) return;
      tensors = std::move(queue_.front());
      queue_.pop_front();
    }
    std::vector<at::Tensor> rows;
    for (const HandedTensor& handed : tensors) AddRow(stream_->Take(handed), rows);
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    Transfer(rows);
    // Only then may the tensors go: their memory is kept until the stream is past this point.
    AwaitTaken();
  }
}

}  // namespace verbatim
