#include "trainer/tensor_digest.h"

#ifdef VERBATIM_CUDA_ENABLED
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>

#include "recorder/digest_cuda.h"
#endif

#include "base/check.h"
#include "recorder/digest.h"
#include "trainer/tensor_dtype.h"

namespace verbatim {
namespace {

#ifdef VERBATIM_CUDA_ENABLED
Digest CudaTensorDigest(const at::Tensor& tensor) {
  // The kernel runs on the current device, which need not be the tensor's.
  const c10::DeviceGuard guard(tensor.device());
  const auto options = tensor.options().dtype(at::kByte);
  const at::IntArrayRef sizes = tensor.sizes();
  const std::size_t scratch_bytes = DeviceDigestScratchBytes(sizes.size(), tensor.nbytes());
  at::Tensor scratch = at::empty({static_cast<std::int64_t>(scratch_bytes)}, options);
  at::Tensor result = at::empty({16}, options);
  const Status status =
      DigestTensorOnDevice(ToDType(tensor.scalar_type()), sizes.data(), sizes.size(),
                           tensor.const_data_ptr(), scratch.mutable_data_ptr(),
                           result.mutable_data_ptr(), c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(status.has_value(), status ? "" : status.error().message);
  const at::Tensor host = result.cpu();
  Digest digest;
  std::memcpy(digest.bytes.data(), host.const_data_ptr(), digest.bytes.size());
  return digest;
}
#endif

}  // namespace

Digest TensorDigest(const at::Tensor& tensor) {
  const at::Tensor contiguous = tensor.contiguous();
#ifdef VERBATIM_CUDA_ENABLED
  if (contiguous.is_cuda()) return CudaTensorDigest(contiguous);
#endif
  VERBATIM_CHECK(contiguous.is_cpu(), "this build digests tensors of the CPU only");
  const at::IntArrayRef sizes = contiguous.sizes();
  return DigestTensor(TensorView{ToDType(contiguous.scalar_type()),
                                 {sizes.data(), sizes.size()},
                                 contiguous.const_data_ptr()});
}

}  // namespace verbatim
