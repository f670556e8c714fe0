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
/// Nothing where `text` is not exactly what EncodeChoices writes.
std::optional<std::vector<std::uint16_t>> DecodeChoices(std::string_view text);

/// Four little-endian bytes each.
std::string EncodeSamples(std::span<const std::uint32_t> samples);
/// Nothing where the size is no multiple of four.
std::optional<std::vector<std::uint32_t>> DecodeSamples(std::string_view bytes);

/// Inverse of ToString(RunStatus).
std::optional<RunStatus> RunStatusFromString(std::string_view text);

}  // namespace verbatim
