// Tensor digests of device memory, with the bits of recorder/digest.h, without waiting for the
// device. C++17; needs no CUDA header.
//
// Method: one CUDA block per 64 KiB chunk (recorder/xxh3_group.h), then one block that hashes the
// header and the chunk digests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "recorder/digest_layout.h"

struct CUstream_st;  // cudaStream_t is CUstream_st*

namespace verbatim {

/// Largest rank of a tensor that DigestTensorOnDevice takes.
constexpr std::size_t kDeviceDigestRankMax = 64;

/// Bytes of device scratch for one DigestTensorOnDevice of a tensor of this rank and size.
constexpr std::size_t DeviceDigestScratchBytes(std::size_t rank, std::size_t byte_size) {
  return DigestMessageBytes(rank, DigestChunkCount(byte_size));
}

/// Enqueues on `stream`: writes the 16 canonical bytes of DigestTensor to `device_digest`.
///
/// `dims` (host, `rank` entries) is read before this returns. All device memory is the caller's,
/// on the current device, and must stay untouched until the stream has passed this point:
/// `device_data` contiguous at any alignment, `device_scratch` DeviceDigestScratchBytes aligned to
/// 8, `device_digest` 16 bytes at any alignment. Two calls that may overlap in time need two
/// scratches. Errors: a shape that makes no sense (kUsage); a launch that CUDA refuses (kFailed).
/// What goes wrong while the kernels run shows at the stream's next synchronisation.
Status DigestTensorOnDevice(DType dtype, const std::int64_t* dims, std::size_t rank,
                            const void* device_data, void* device_scratch, void* device_digest,
                            CUstream_st* stream);

}  // namespace verbatim
