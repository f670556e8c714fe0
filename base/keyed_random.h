// Random numbers by key: what is drawn depends on who draws it, never on when (docs/spec.md,
// "Random numbers", states every bit).
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/philox.h"

namespace verbatim {

/// What a stream of numbers is for. The values are part of the format: never renumber.
enum class RandomPurpose : std::uint8_t {
  kInitialWeights = 1,    ///< a = tensor within the layer, b = layer, c = 0
  kSampler = 2,           ///< a = 0, b = 0, c = seq
  kBatch = 3,             ///< a = 0, b = 0, c = seq
  kDropout = 4,           ///< a = micro-batch, b = layer, c = seq
  kSplit = 5,             ///< a = b = c = 0: which samples are held out
  kEvaluationSubnet = 6,  ///< c = index of the evaluated subnet
  kCalibrationBatch = 7,  ///< a = batch, c = index of the evaluated subnet
  kReexecutionDraw = 8,   ///< a = b = c = 0: which subnets a verification executes again
  kFault = 9,             ///< a = what is drawn, b = kind of fault, c = seq (0 for the seq's draw)
  kFairRound = 10,        ///< a = 0, b = block, c = round
};

/// Names one stream of up to 2^34 words. Distinct names never share a word.
struct RandomKey {
  std::uint64_t seed;
  RandomPurpose purpose;
  std::uint32_t a = 0;  ///< below 2^24
  std::uint32_t b = 0;
  std::uint32_t c = 0;
};

/// Words 4·block … 4·block + 3 of the stream named `key`.
VERBATIM_HOST_DEVICE inline PhiloxBlock RandomBlock(const RandomKey& key, std::uint32_t block) {
  const std::uint32_t domain =
      static_cast<std::uint32_t>(key.purpose) << 24 | (key.a & 0x00ffffffu);
  return Philox4x32(PhiloxBlock{{block, domain, key.b, key.c}},
                    static_cast<std::uint32_t>(key.seed),
                    static_cast<std::uint32_t>(key.seed >> 32));
}

/// A float in [0, 1): the word's upper 24 bits times 2^-24, exact.
VERBATIM_HOST_DEVICE inline float UniformFloat(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Reads one stream's words in order.
class KeyedRandom {
 public:
  explicit KeyedRandom(const RandomKey& key) : key_(key) {}

  std::uint32_t NextWord() {
    const std::uint32_t lane = position_ & 3;
    if (lane == 0) block_ = RandomBlock(key_, static_cast<std::uint32_t>(position_ >> 2));
    ++position_;
    return block_.word[lane];
  }

  /// Uniform in [0, bound), without bias. Source: Lemire, "Fast random integer generation in an
  /// interval", ACM TOMACS 29(1), 2019, algorithm 5, on 32-bit words. bound >= 1.
  std::uint32_t Below(std::uint32_t bound) {
    std::uint64_t product = static_cast<std::uint64_t>(NextWord()) * bound;
    auto low = static_cast<std::uint32_t>(product);
    if (low < bound) {
      const std::uint32_t threshold = static_cast<std::uint32_t>(-bound) % bound;
      while (low < threshold) {
        product = static_cast<std::uint64_t>(NextWord()) * bound;
        low = static_cast<std::uint32_t>(product);
      }
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  RandomKey key_;
  std::uint64_t position_ = 0;
  PhiloxBlock block_{};
};

}  // namespace verbatim
