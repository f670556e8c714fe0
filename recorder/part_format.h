// Constants of part files, which their writer and reader share. The page to it: docs/format.md,
// "Part files".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbatim {

inline constexpr std::string_view kPartMagic = "VBTMPART";
/// The version that this program writes, and the only one that it reads.
inline constexpr std::uint32_t kPartVersion = 1;
inline constexpr std::size_t kPartHeadBytes = 12;

/// Each frame begins with it, so that frames are found behind a damaged one.
inline constexpr std::string_view kFrameMarker = "part";
/// Marker, u32 length, XXH3-128 of the payload. The payload follows.
inline constexpr std::size_t kFrameHeadBytes = 24;

/// First byte of a payload.
inline constexpr std::uint8_t kSessionFrame = 0;
inline constexpr std::uint8_t kSubnetFrame = 1;

}  // namespace verbatim
