// Memory of CPU tensors, kept and handed out again instead of going back to the system.
#pragma once

#include <cstdint>

namespace verbatim {

/// At most so much free memory is kept; what is beyond goes back to the system.
inline constexpr std::int64_t kKeptTensorBytesMax = std::int64_t{1} << 30;

/// Makes LibTorch take the memory of CPU tensors from a pool, for the rest of the process. Training
/// asks for the same sizes over and over; the system's allocator gives large blocks back and clears
/// their pages when they are asked for again. Call it before other threads use tensors; again, it
/// does nothing. Blocks are aligned to 64 bytes, as LibTorch's own. Tensors of any thread. Under
/// the address sanitizer it does nothing, so that a use after free is found.
void PoolTensorMemory();

/// Free memory that the pool keeps now, in bytes.
std::int64_t KeptTensorBytes();

/// Memory of tensors that the pool has handed out, in bytes; multiples of 64 a tensor.
struct TensorMemoryUse {
  std::int64_t now = 0;
  std::int64_t peak = 0;  ///< at most, since the last ForgetTensorPeak
};
TensorMemoryUse UsedTensorMemory();
/// From now on the peak is what is in use now, or more.
void ForgetTensorPeak();

}  // namespace verbatim
