#include "trainer/device_stream.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <optional>
#include <utility>

#include "trainer/tensor_layout.h"

namespace verbatim {
namespace {

class HostStream : public DeviceStream {
 public:
  void Enter() override {}
  bool IsBehind() const override { return false; }
  Mark Record() override { return nullptr; }
  void WaitFor(const Mark&) override {}
  void Uses(const at::Tensor&) override {}
  HandedTensor Give(const at::Tensor& tensor, at::Device) override { return {tensor, nullptr}; }
  at::Tensor Bring(const at::Tensor& tensor) override { return tensor; }
};

/// Laid out alike. Enqueued on the current streams of both devices.
at::Tensor CopyAlike(const at::Tensor& tensor, at::Device to) {
  at::Tensor copy = AllocateAlike(LayoutOf(tensor), to);
  ElementsOf(copy).copy_(ElementsOf(tensor), /*non_blocking=*/true);
  return copy;
}

/// Through LibTorch's interface for devices of any kind, so that this file needs no CUDA.
class EventMark : public DeviceMark {
 public:
  explicit EventMark(const c10::Stream& stream) : event_(stream.device_type()) {
    event_.record(stream);
  }

  void Synchronize() const override { event_.synchronize(); }
  void Block(const c10::Stream& stream) const { event_.block(stream); }
  at::Device device() const { return event_.device(); }

 private:
  c10::Event event_;
};

class QueuedStream : public DeviceStream {
 public:
  explicit QueuedStream(const c10::Stream& stream)
      : guard_(stream.device_type()), stream_(stream) {}

  void Enter() override {
    guard_.setDevice(stream_.device());
    guard_.exchangeStream(stream_);
  }

  bool IsBehind() const override { return true; }

  Mark Record() override { return std::make_shared<EventMark>(stream_); }

  void WaitFor(const Mark& mark) override {
    if (!mark) return;
    const auto& event = static_cast<const EventMark&>(*mark);
    event.Block(stream_);
    // Copies from there are enqueued there.
    if (event.device() != stream_.device()) event.Block(SideStream(event.device()));
  }

  void Uses(const at::Tensor& tensor) override {
    if (tensor.defined() && tensor.device() == stream_.device()) UseOn(tensor, stream_);
  }

  HandedTensor Give(const at::Tensor& tensor, at::Device to) override {
    const auto ready = std::make_shared<EventMark>(stream_);
    if (to == tensor.device() || !to.is_cuda()) return {tensor, ready};
    // LibTorch copies on the current stream of the tensor's device, and orders that with the
    // current one of the other.
    const c10::Stream copying = CopyStream();
    ready->Block(copying);
    const c10::Stream arriving = SideStream(to);
    const c10::Stream computing = guard_.exchangeStream(copying);
    at::Tensor copy = CopyAlike(tensor, to);
    guard_.exchangeStream(computing);
    UseOn(tensor, copying);
    return {std::move(copy), std::make_shared<EventMark>(arriving)};
  }

  at::Tensor Bring(const at::Tensor& tensor) override {
    if (tensor.device() == stream_.device()) {
      Uses(tensor);
      return tensor;
    }
    if (tensor.is_cuda()) UseOn(tensor, SideStream(tensor.device()));
    return CopyAlike(tensor, stream_.device());
  }

 private:
  void UseOn(const at::Tensor& tensor, const c10::Stream& stream) const {
    guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
  }

  /// The thread's current stream on another device.
  c10::Stream SideStream(at::Device device) {
    const auto known = side_.find(device.index());
    if (known != side_.end()) return known->second;
    const c10::Stream stream = guard_.getNewStream(device);
    guard_.exchangeStream(stream);
    return side_.emplace(device.index(), stream).first->second;
  }

  c10::Stream CopyStream() {
    if (!copy_) copy_ = guard_.getNewStream(stream_.device());
    return *copy_;
  }

  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream stream_;
  std::optional<c10::Stream> copy_;
  std::map<c10::DeviceIndex, c10::Stream> side_;  ///< by device, but for the stream's own
};

}  // namespace

at::Tensor DeviceStream::Take(const HandedTensor& handed) {
  WaitFor(handed.ready);
  return Bring(handed.tensor);
}

std::unique_ptr<DeviceStream> OpenDeviceStream(at::Device device) {
  if (device.is_cpu()) return std::make_unique<HostStream>();
  return AdoptDeviceStream(c10::impl::VirtualGuardImpl(device.type()).getNewStream(device));
}

std::unique_ptr<DeviceStream> AdoptDeviceStream(const c10::Stream& stream) {
  return std::make_unique<QueuedStream>(stream);
}

void SynchronizeDevice(at::Device device) {
  if (device.is_cpu()) return;
  c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
}

}  // namespace verbatim
