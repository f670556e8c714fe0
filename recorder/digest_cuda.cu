#include <cuda_runtime_api.h>

#include <string>

#include "recorder/digest_cuda.h"
#include "recorder/xxh3_group.h"

namespace verbatim {
namespace {

static_assert(kDeviceDigestRankMax == xxh3::TensorHeader::kRankMax);
static_assert(kDeviceDigestRankMax < xxh3::kGroupThreads, "a thread per header word");

// In constant memory, because only what has an address there can be read at a varying index.
__constant__ constexpr xxh3::Secret kSecret = xxh3::DefaultSecret();

__global__ void __launch_bounds__(xxh3::kGroupThreads)
    DigestChunks(const std::uint8_t* data, std::size_t size, std::size_t header_bytes,
                 std::uint8_t* message) {
  __shared__ xxh3::GroupMemory memory;
  xxh3::StartGroup(memory, kSecret);
  xxh3::DigestChunkByGroup(data, size, blockIdx.x, header_bytes, message, memory);
}

__global__ void __launch_bounds__(xxh3::kGroupThreads)
    FinishTensor(xxh3::TensorHeader header, std::size_t chunk_count, std::uint8_t* message,
                 std::uint8_t* digest) {
  __shared__ xxh3::GroupMemory memory;
  xxh3::StartGroup(memory, kSecret);
  xxh3::FinishTensorByGroup(header, chunk_count, message, digest, memory);
}

Status LaunchStatus(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {};
  return Failed(
      std::string("cannot launch the digest kernel ") + kernel + ": " + cudaGetErrorString(error),
      "check the GPU and its driver with nvidia-smi; a CUDA error of earlier work on the "
      "device can show here as well");
}

}  // namespace

Status DigestTensorOnDevice(DType dtype, const std::int64_t* dims, std::size_t rank,
                            const void* device_data, void* device_scratch, void* device_digest,
                            CUstream_st* stream) {
  std::size_t size = 0;
  if (rank > kDeviceDigestRankMax || !TensorBytes(dtype, dims, rank, &size)) {
    return UsageError(
        "cannot digest a tensor of dtype " + std::to_string(static_cast<std::uint32_t>(dtype)) +
            " and rank " + std::to_string(rank) + " on a device",
        "give a known dtype, a rank of at most " + std::to_string(kDeviceDigestRankMax) +
            " and dimensions that are not negative and fit in memory");
  }
  xxh3::TensorHeader header{dtype, static_cast<std::uint32_t>(rank), {}};
  for (std::size_t i = 0; i < rank; ++i) header.dims[i] = dims[i];
  const std::size_t chunk_count = DigestChunkCount(size);
  auto* message = static_cast<std::uint8_t*>(device_scratch);
  if (chunk_count > 0) {
    DigestChunks<<<static_cast<unsigned>(chunk_count), xxh3::kGroupThreads, 0, stream>>>(
        static_cast<const std::uint8_t*>(device_data), size, DigestMessageBytes(rank, 0), message);
    RETURN_IF_ERROR(LaunchStatus("DigestChunks"));
  }
  FinishTensor<<<1, xxh3::kGroupThreads, 0, stream>>>(header, chunk_count, message,
                                                      static_cast<std::uint8_t*>(device_digest));
  return LaunchStatus("FinishTensor");
}

}  // namespace verbatim
