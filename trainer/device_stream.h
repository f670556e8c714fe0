// The order of work on devices: a stream per stage, and marks in it that others wait for.
//
// A GPU computes behind its host: a call enqueues work on a stream and returns. What one stream
// writes and another reads therefore needs a mark, recorded after the writing and waited for before
// the reading. Host threads order the calls (the scheduler, and the locks around it); marks order
// what the devices do. On a CPU a call returns when it has computed: every mark is null, and all
// this does nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>

namespace verbatim {

/// A point in a stream. Thread-safe.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  /// The calling thread waits until the device is there. Throws what the device's work failed with.
  virtual void Synchronize() const = 0;
};

/// Null: nothing to wait for.
using Mark = std::shared_ptr<const DeviceMark>;

/// The calling thread waits.
inline void Synchronize(const Mark& mark) {
  if (mark) mark->Synchronize();
}

/// A tensor, and when it has its values.
struct HandedTensor {
  at::Tensor tensor;
  Mark ready = nullptr;
};

/// What one thread enqueues, on one device and, for copies, on others. One thread at a time.
/// Throws what LibTorch throws.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  /// The calling thread's work goes to this stream from now on.
  virtual void Enter() = 0;
  /// Whether the device computes behind its host.
  virtual bool IsBehind() const = 0;
  /// After all that was enqueued so far.
  virtual Mark Record() = 0;
  /// What is enqueued from now on comes after the mark.
  virtual void WaitFor(const Mark& mark) = 0;
  /// This stream's work uses a tensor that may die before that work is done, of memory that another
  /// stream asked for: the memory is not handed out before.
  virtual void Uses(const at::Tensor& tensor) = 0;
  /// The tensor as the work so far leaves it, for a stream of device `to`. A copy to another device
  /// holds up nothing that this stream is given afterwards.
  virtual HandedTensor Give(const at::Tensor& tensor, at::Device to) = 0;
  /// The tensor on this stream's device, for use after this: itself where it is there.
  virtual at::Tensor Bring(const at::Tensor& tensor) = 0;

  /// What another stream has given to this one.
  at::Tensor Take(const HandedTensor& handed);
};

/// A stream of its own on a device.
std::unique_ptr<DeviceStream> OpenDeviceStream(at::Device device);
/// A stream that somebody else has made, and keeps.
std::unique_ptr<DeviceStream> AdoptDeviceStream(const c10::Stream& stream);

using OpenStream = std::function<std::unique_ptr<DeviceStream>(at::Device)>;

/// The calling thread waits until the device has done all that any thread has given it.
void SynchronizeDevice(at::Device device);

}  // namespace verbatim
