// XXH3-128 by a group of 512 threads: what one CUDA block runs, and a CPU can run as well.
//
// The work is a sequence of phases that end in a barrier. On a device every thread of the block
// runs a phase for its own index; on a CPU one thread runs it for all indices in turn. A phase
// never reads what another index wrote in the same phase, so both give the same bits, and tests
// cover on a CPU everything but the launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "recorder/digest_layout.h"
#include "recorder/xxh3.h"

namespace verbatim::xxh3 {

/// Blocks of 1024 bytes that a group sums at once: one 64 KiB chunk.
constexpr int kGroupBlocks = static_cast<int>(kDigestChunkBytes / kBlockBytes);
constexpr int kGroupThreads = kGroupBlocks * kLanes;

/// What the threads of a group share (about 4.3 KiB). Starts uninitialised.
struct GroupMemory {
  Secret secret;
  std::uint64_t sum[kGroupThreads];  ///< [block][lane]
  std::uint64_t lane[kLanes];
};

/// Runs body(index) for every thread index of the group, then a barrier.
template <typename Body>
VERBATIM_HOST_DEVICE inline void ForEachGroupThread(const Body& body) {
#ifdef __CUDA_ARCH__
  body(static_cast<int>(threadIdx.x));
  __syncthreads();
#else
  for (int thread = 0; thread < kGroupThreads; ++thread) body(thread);
#endif
}

/// Fills what HashByGroup expects in the group's memory.
VERBATIM_HOST_DEVICE inline void StartGroup(GroupMemory& memory, const Secret& secret) {
  ForEachGroupThread([&](int thread) {
    if (thread < 24) memory.secret.word[thread] = secret.word[thread];
    if (thread < kLanes) memory.lane[thread] = LaneStart(thread);
  });
}

/// Adds blocks `first` … of a long input, at most kGroupBlocks of them, to the group's lanes.
VERBATIM_HOST_DEVICE inline void AbsorbBlocks(const std::uint8_t* data, std::size_t size,
                                              std::size_t first, GroupMemory& memory) {
  const std::size_t blocks = BlockCount(size);
  ForEachGroupThread([&](int thread) {
    const std::size_t block = first + thread / kLanes;
    if (block >= blocks) return;
    memory.sum[thread] = LaneBlockSum(data, size, block, thread % kLanes, memory.secret);
  });
  ForEachGroupThread([&](int thread) {
    if (thread >= kLanes) return;
    std::uint64_t acc = memory.lane[thread];
    for (int i = 0; i < kGroupBlocks && first + i < blocks; ++i) {
      const bool is_last = first + i + 1 == blocks;
      acc = LaneAbsorb(acc, memory.sum[i * kLanes + thread], is_last, thread, memory.secret);
    }
    memory.lane[thread] = acc;
  });
}

/// Writes the canonical hash of `size` bytes to `out` (16 bytes). Once per StartGroup.
VERBATIM_HOST_DEVICE inline void HashByGroup(const std::uint8_t* data, std::size_t size,
                                             GroupMemory& memory, std::uint8_t* out) {
  const bool is_long = size > kShortBytesMax;
  for (std::size_t first = 0; is_long && first < BlockCount(size); first += kGroupBlocks) {
    AbsorbBlocks(data, size, first, memory);
  }
  ForEachGroupThread([&](int thread) {
    if (thread != 0) return;
    PutCanonical(is_long ? FinishLong(memory.lane, size, memory.secret)
                         : HashShort(data, size, memory.secret),
                 out);
  });
}

/// The header of a tensor's message, by value, so that a kernel launch can carry it.
struct TensorHeader {
  static constexpr std::size_t kRankMax = 64;

  DType dtype;
  std::uint32_t rank;
  std::int64_t dims[kRankMax];
};

/// Group `chunk` writes the canonical digest of that 64 KiB chunk of a tensor of `size` bytes to
/// its place in `message`, whose header takes `header_bytes`.
VERBATIM_HOST_DEVICE inline void DigestChunkByGroup(const std::uint8_t* data, std::size_t size,
                                                    std::size_t chunk, std::size_t header_bytes,
                                                    std::uint8_t* message, GroupMemory& memory) {
  const std::size_t begin = chunk * kDigestChunkBytes;
  const std::size_t rest = size - begin;
  HashByGroup(data + begin, rest < kDigestChunkBytes ? rest : kDigestChunkBytes, memory,
              message + header_bytes + kDigestBytes * chunk);
}

/// One group writes the header in front of the chunk digests in `message` (aligned to 8 bytes) and
/// the tensor's canonical digest to `out`.
VERBATIM_HOST_DEVICE inline void FinishTensorByGroup(const TensorHeader& header,
                                                     std::size_t chunk_count, std::uint8_t* message,
                                                     std::uint8_t* out, GroupMemory& memory) {
  ForEachGroupThread([&](int thread) {
    if (static_cast<std::uint32_t>(thread) > header.rank) return;
    reinterpret_cast<std::uint64_t*>(message)[thread] =
        DigestHeaderWord(header.dtype, header.dims, header.rank, thread);
  });
  HashByGroup(message, DigestMessageBytes(header.rank, chunk_count), memory, out);
}

}  // namespace verbatim::xxh3
