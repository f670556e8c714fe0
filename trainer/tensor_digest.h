// Digests of LibTorch tensors, on the device where they live.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/digest.h"

namespace verbatim {

/// Equal bits for equal tensors on any device (docs/format.md, section 4). The tensor may have any
/// strides; its contiguous form is digested. Waits for the device.
Digest TensorDigest(const at::Tensor& tensor);

/// Digests of tensors of one device, taken one after another and read together: of a device that
/// computes behind its host without waiting for it. The bits are TensorDigest's.
class PendingDigests {
 public:
  /// Of at most `count` tensors.
  explicit PendingDigests(std::size_t count) : count_(count) {}

  /// Enqueued on the current stream: the tensor may be changed afterwards by what comes later
  /// there.
  void Take(const at::Tensor& tensor);
  /// After the last one: enqueues what brings them to the host.
  void Fetch();
  /// Likewise, and waits until they are there.
  void FetchNow();
  /// After Fetch, once the stream has done all that (trainer/device_stream.h); on a CPU at once.
  Digest At(std::size_t index) const;

 private:
  std::size_t count_;
  std::vector<Digest> digests_;  ///< of a CPU
  std::size_t taken_ = 0;        ///< by another device
  at::Tensor on_device_;
  at::Tensor on_host_;
};

/// NamedTensorsDigest (recorder/digest.h) of tensors whose digests are read later.
class PendingNamedDigest {
 public:
  explicit PendingNamedDigest(std::size_t count) : digests_(count) {}

  /// In order.
  void Take(std::string name, const at::Tensor& tensor);
  void Take(std::string name, const Digest& known) { parts_.emplace_back(std::move(name), known); }
  void Fetch() { digests_.Fetch(); }
  /// As PendingDigests::At.
  Digest Finish() const;
  /// Both, with the wait between them.
  Digest Now();

 private:
  PendingDigests digests_;
  std::size_t taken_ = 0;
  /// The name, and the digest or its place in `digests_`.
  std::vector<std::pair<std::string, std::variant<std::size_t, Digest>>> parts_;
};

}  // namespace verbatim
