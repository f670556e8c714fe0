// Digests of bytes, tensors and sets of named tensors, on the CPU (on CUDA: recorder/digest_cuda.h,
// with equal bits). The exact bytes are stated in docs/format.md, "Digests".
//
// The hash is XXH3-128 with seed 0 (https://xxhash.com), in its canonical byte order. It finds
// accidents, not forgers. All functions are pure and may be called from any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/digest.h"
#include "base/encoding.h"
#include "recorder/digest_layout.h"

namespace verbatim {

/// A tensor in host memory: contiguous, row-major, little-endian, any alignment. Owns nothing;
/// `data` may be null where the tensor is empty.
struct TensorView {
  DType dtype;
  std::span<const std::int64_t> shape;
  const void* data;
};

/// XXH3-128 of `size` bytes; `data` may be null where size is 0.
Digest DigestBytes(const void* data, std::size_t size);

/// Digest over dtype, shape and the digests of the tensor's 64 KiB chunks. CHECKs that the dtype
/// is known and no dimension is negative.
Digest DigestTensor(const TensorView& tensor);

/// DigestTensor's last step, for digests of chunks that were computed elsewhere, in chunk order.
/// CHECKs that there are as many as the shape asks for.
Digest DigestTensorFromChunks(DType dtype, std::span<const std::int64_t> shape,
                              std::span<const Digest> chunks);

/// Digest over named tensors in order of Add, which is part of what is digested. Names are UTF-8,
/// below 2^32 bytes. One thread at a time.
class NamedTensorsDigest {
 public:
  void Add(std::string_view name, const Digest& tensor);
  /// Digest of what was added so far; of no bytes where nothing was.
  Digest Finish() const;

 private:
  Encoder message_;
};

}  // namespace verbatim
