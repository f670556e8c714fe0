// Constants of the packed columns of table subnets, which their encoder and decoder share
// (store/packed_rows.h), and the views that unpack them in SQL. The page to it: docs/format.md,
// "Packed columns".
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim {

// ---- Column accesses: a byte of flags, then items of one width.

/// What the items of one subnet have; a flag is set only where at least one item needs it.
inline constexpr std::uint8_t kHasBase = 1;  ///< another base version than the one read
inline constexpr std::uint8_t kHasWeights = 2;
inline constexpr std::uint8_t kHasOptimizerState = 4;
inline constexpr std::uint8_t kHasGradients = 8;
inline constexpr std::uint8_t kWideDistances = 16;  ///< of 8 bytes instead of 4
inline constexpr std::uint8_t kAccessFlagsMax = 31;

/// u24 layer, u16 stage, u8 which digests are present (bit i: the i-th of the flags' columns from
/// weights on). Distances and digests follow.
inline constexpr std::size_t kAccessPrefixBytes = 6;
inline constexpr std::size_t kNarrowDistanceBytes = 4;
inline constexpr std::size_t kWideDistanceBytes = 8;
inline constexpr std::size_t kPackedDigestBytes = 16;
inline constexpr std::int32_t kStageMax = 0xffff;

constexpr std::size_t DistanceBytes(std::uint8_t flags) {
  return (flags & kWideDistances) != 0 ? kWideDistanceBytes : kNarrowDistanceBytes;
}

constexpr std::size_t AccessItemBytes(std::uint8_t flags) {
  const std::size_t distances = (flags & kHasBase) != 0 ? 2 : 1;
  std::size_t digests = 0;
  for (const std::uint8_t column : {kHasWeights, kHasOptimizerState, kHasGradients}) {
    digests += (flags & column) != 0 ? 1 : 0;
  }
  return kAccessPrefixBytes + distances * DistanceBytes(flags) + digests * kPackedDigestBytes;
}

// ---- Column activations: items of u32 micro-batch, u32 position, digest.

inline constexpr std::size_t kActivationItemBytes = 24;

// ---- Column activity: i64 begin of the earliest task, u8 width, then items.

inline constexpr std::size_t kActivityHeadBytes = 9;
inline constexpr std::uint8_t kNarrowTasks = 0;
inline constexpr std::uint8_t kWideTasks = 1;
/// u8 stage, u8 micro-batch, u8 phase, u32 begin after the earliest, u32 duration.
inline constexpr std::size_t kNarrowTaskBytes = 11;
/// u32 stage, u32 micro-batch, u8 phase, u64 begin after the earliest, i64 duration.
inline constexpr std::size_t kWideTaskBytes = 25;

// ---- Column manifest of table checkpoints: per layer i64 version, 32 bytes file.

inline constexpr std::size_t kManifestItemBytes = 40;

}  // namespace verbatim
