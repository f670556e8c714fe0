#include "trainer/cuda/dropout_mask.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

namespace verbatim {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kBlocksMax = 65536;

__global__ void __launch_bounds__(kThreads)
    FillMask(RandomKey key, DropoutRule rule, std::int64_t size, float* mask) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       4 * block < size; block += step) {
    FillDropoutBlock(key, rule, block, size, mask);
  }
}

}  // namespace

Status FillDropoutMaskOnDevice(const RandomKey& key, const DropoutRule& rule, std::int64_t size,
                               float* mask, CUstream_st* stream) {
  if (size == 0) return {};
  const std::int64_t blocks = (size + 4 * kThreads - 1) / (4 * kThreads);
  FillMask<<<static_cast<unsigned>(std::min(blocks, kBlocksMax)), kThreads, 0, stream>>>(
      key, rule, size, mask);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {};
  return Failed(std::string("cannot launch the dropout kernel: ") + cudaGetErrorString(error),
                "check the GPU and its driver with nvidia-smi");
}

}  // namespace verbatim
