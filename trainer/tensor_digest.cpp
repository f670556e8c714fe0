#include "trainer/tensor_digest.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "base/check.h"
#include "recorder/digest.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/tensor_dtype.h"

namespace verbatim {

void PendingDigests::Take(const at::Tensor& tensor) {
  const at::Tensor contiguous = tensor.contiguous();
  if (contiguous.is_cpu()) {
    const at::IntArrayRef sizes = contiguous.sizes();
    digests_.push_back(DigestTensor(TensorView{ToDType(contiguous.scalar_type()),
                                               {sizes.data(), sizes.size()},
                                               contiguous.const_data_ptr()}));
    return;
  }
  VERBATIM_CHECK(taken_ < count_, "more than {} tensors", count_);
  if (!on_device_.defined()) {
    on_device_ = at::empty({static_cast<std::int64_t>(count_ * kDigestBytes)},
                           at::TensorOptions().dtype(at::kByte).device(contiguous.device()));
  }
  auto* const results = static_cast<std::byte*>(on_device_.mutable_data_ptr());
  EnqueueDigest(contiguous, results + kDigestBytes * taken_++);
}

void PendingDigests::Fetch() {
  if (!on_device_.defined()) return;
  // Pinned, or the copy would wait for the device.
  on_host_ =
      at::empty(on_device_.sizes(), at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  on_host_.copy_(on_device_, /*non_blocking=*/true);
}

void PendingDigests::FetchNow() {
  if (on_device_.defined()) on_host_ = on_device_.to(at::kCPU);
}

Digest PendingDigests::At(std::size_t index) const {
  if (!on_host_.defined()) return digests_.at(index);
  VERBATIM_CHECK(index < taken_, "{} digests were taken", taken_);
  Digest digest;
  std::memcpy(digest.bytes.data(),
              static_cast<const std::byte*>(on_host_.const_data_ptr()) + kDigestBytes * index,
              kDigestBytes);
  return digest;
}

void PendingNamedDigest::Take(std::string name, const at::Tensor& tensor) {
  digests_.Take(tensor);
  parts_.emplace_back(std::move(name), taken_++);
}

Digest PendingNamedDigest::Finish() const {
  NamedTensorsDigest digest;
  for (const auto& [name, part] : parts_) {
    const auto* const place = std::get_if<std::size_t>(&part);
    digest.Add(name, place ? digests_.At(*place) : std::get<Digest>(part));
  }
  return digest.Finish();
}

Digest PendingNamedDigest::Now() {
  digests_.FetchNow();
  return Finish();
}

Digest TensorDigest(const at::Tensor& tensor) {
  PendingDigests digests(1);
  digests.Take(tensor);
  digests.FetchNow();
  return digests.At(0);
}

}  // namespace verbatim
