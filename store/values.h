// How a row's values look in their columns (docs/format.md, "Tables"). Inverse pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// "[0,3,12]".
std::string EncodeChoices(std::span<const std::uint16_t> choices);
/// False where `text` is not exactly what EncodeChoices writes. Reuses the vector's memory.
bool DecodeChoices(std::string_view text, std::vector<std::uint16_t>& choices);

/// Four little-endian bytes each.
std::string EncodeSamples(std::span<const std::uint32_t> samples);
/// False where the size is no multiple of four. Reuses the vector's memory.
bool DecodeSamples(std::string_view bytes, std::vector<std::uint32_t>& samples);

/// Inverse of ToString(RunStatus).
std::optional<RunStatus> RunStatusFromString(std::string_view text);

}  // namespace verbatim
