// The largest sizes that a spec may ask for. They keep every later product within 64 bits, and
// every random stream within its 2^34 words.
#pragma once

#include <cstdint>

namespace verbatim {

inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;  ///< channels, features, hidden
inline constexpr std::int64_t kMaxLength = 1 << 16;               ///< places of a sequence
inline constexpr std::int64_t kMaxKernel = 1023;
inline constexpr std::int64_t kMaxDilation = 1024;
inline constexpr std::int64_t kMaxExpansion = 1024;
inline constexpr std::int64_t kMaxCandidates = 1 << 16;  ///< of a block: Choices are u16
inline constexpr std::int64_t kMaxLayers = 1 << 20;
inline constexpr std::int64_t kMaxDelay = 1 << 16;   ///< subnets
inline constexpr std::int64_t kMaxWindow = 1 << 16;  ///< pending draws
inline constexpr std::int64_t kMaxNeighbours = 1 << 10;
inline constexpr std::int64_t kMaxSubnets = 0xffffffff;  ///< seq is a 32-bit key
inline constexpr std::int64_t kMaxBatch = 0x7fffffff;
inline constexpr std::int64_t kMaxMicrobatches = (1 << 24) - 1;  ///< m is a 24-bit key
inline constexpr std::int64_t kMaxThreadsPerStage = 1024;        ///< far above any machine
inline constexpr std::int64_t kMaxTensorElements = std::int64_t{1} << 34;

}  // namespace verbatim
