#include "trainer/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "recorder/digest_cuda.h"
#include "trainer/cuda/dropout_mask.h"
#include "trainer/cuda/nccl_payloads.h"
#include "trainer/tensor_dtype.h"

namespace verbatim {

bool HasCudaBuild() {
  return true;
}

int CudaDeviceCount() {
  return at::globalContext().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
}

std::string CudaObstacle() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error == cudaSuccess && count > 0 ? "" : cudaGetErrorString(error);
}

std::string CudaDeviceName(int index) {
  return at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index))->name;
}

void AddCudaFacts(int index, std::map<std::string, std::string>& facts) {
  const auto* const gpu = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  facts["cuda.gpu"] = gpu->name;
  facts["cuda.compute_capability"] = std::to_string(gpu->major) + "." + std::to_string(gpu->minor);
  facts["cuda.driver"] = std::to_string(driver);
  facts["cuda.runtime"] = std::to_string(runtime);
  facts["cuda.nccl"] = NcclVersion();
  facts["cuda.cudnn"] = std::to_string(at::detail::getCUDAHooks().versionCuDNN());
}

bool CanCopyDirectly(int from, int to) {
  int can = 0;
  return cudaDeviceCanAccessPeer(&can, to, from) == cudaSuccess && can != 0;
}

void EnqueueDigest(const at::Tensor& tensor, std::byte* result) {
  // The kernel runs on the current device, which need not be the tensor's.
  const c10::DeviceGuard guard(tensor.device());
  const at::IntArrayRef sizes = tensor.sizes();
  const std::size_t scratch_bytes = DeviceDigestScratchBytes(sizes.size(), tensor.nbytes());
  at::Tensor scratch = at::empty({static_cast<std::int64_t>(scratch_bytes)},
                                 at::TensorOptions().dtype(at::kByte).device(tensor.device()));
  const Status status = DigestTensorOnDevice(
      ToDType(tensor.scalar_type()), sizes.data(), sizes.size(), tensor.const_data_ptr(),
      scratch.mutable_data_ptr(), result, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(status.has_value(), status ? "" : status.error().message);
}

void EnqueueDropoutMask(const RandomKey& key, double probability, at::Tensor& mask) {
  const c10::DeviceGuard guard(mask.device());
  const Status status = FillDropoutMaskOnDevice(key, DropoutRule::Of(probability), mask.numel(),
                                                mask.mutable_data_ptr<float>(),
                                                c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(status.has_value(), status ? "" : status.error().message);
}

}  // namespace verbatim
