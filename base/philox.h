// Philox4x32-10, the counter-based generator behind every random number of a run.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11,
// section 5 (Philox-4x32, ten rounds). A pure function of (key, counter): nothing is ever drawn
// from a shared, ordered stream, so no schedule can change a number. C++17, host and device.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace verbatim {

struct PhiloxBlock {
  std::uint32_t word[4];
};

/// The four 32-bit words for one 128-bit counter under one 64-bit key.
VERBATIM_HOST_DEVICE inline PhiloxBlock Philox4x32(PhiloxBlock counter, std::uint32_t key0,
                                                   std::uint32_t key1) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.word[0];
    const std::uint64_t product1 = kMultiplier1 * counter.word[2];
    counter = PhiloxBlock{{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                           static_cast<std::uint32_t>(product1),
                           static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                           static_cast<std::uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

}  // namespace verbatim
