// What a tensor digest is taken over (docs/format.md, "Digests"): chunks, header.
// C++17, host and device: recorder/digest.cpp and recorder/digest_cuda.cu share it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/host_device.h"

namespace verbatim {

/// A tensor's bytes are digested in chunks of this size; the last may be shorter.
constexpr std::size_t kDigestChunkBytes = 65536;
/// Bytes of a digest in its canonical form.
constexpr std::size_t kDigestBytes = 16;

/// Chunks of a tensor of `byte_size` bytes; an empty tensor has none.
constexpr std::size_t DigestChunkCount(std::size_t byte_size) {
  return byte_size / kDigestChunkBytes + (byte_size % kDigestChunkBytes != 0 ? 1 : 0);
}

/// Bytes of the final message: u32 dtype, u32 rank, u64 per dimension, 16 bytes per chunk.
VERBATIM_HOST_DEVICE constexpr std::size_t DigestMessageBytes(std::size_t rank,
                                                              std::size_t chunk_count) {
  return 8 + 8 * rank + kDigestBytes * chunk_count;
}

/// Word `index` (0 … rank) of the message's header as a little-endian u64: word 0 is dtype (lower
/// half) and rank (upper half), word i is dimension i - 1.
VERBATIM_HOST_DEVICE inline std::uint64_t DigestHeaderWord(DType dtype, const std::int64_t* dims,
                                                           std::size_t rank, std::size_t index) {
  if (index == 0) return static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(dtype);
  return static_cast<std::uint64_t>(dims[index - 1]);
}

}  // namespace verbatim
