// Dropout's multiplier of one element: arithmetic that the CPU and a CUDA kernel share to the bit.
// C++17, host and device.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/keyed_random.h"

namespace verbatim {

/// What becomes of a word drawn for an element (docs/spec.md, section 3).
struct DropoutRule {
  std::uint64_t threshold;  ///< words below are dropped
  float scale;              ///< of elements that are kept

  static DropoutRule Of(double probability) {
    return {static_cast<std::uint64_t>(probability * 0x1p32),
            static_cast<float>(1.0 / (1.0 - probability))};
  }
};

/// Elements 4 · block … 4 · block + 3 of a mask of `size`.
VERBATIM_HOST_DEVICE inline void FillDropoutBlock(const RandomKey& key, const DropoutRule& rule,
                                                  std::int64_t block, std::int64_t size,
                                                  float* mask) {
  const PhiloxBlock words = RandomBlock(key, static_cast<std::uint32_t>(block));
  for (std::int64_t i = 0; i < 4 && 4 * block + i < size; ++i) {
    mask[4 * block + i] = words.word[i] < rule.threshold ? 0.0f : rule.scale;
  }
}

}  // namespace verbatim
