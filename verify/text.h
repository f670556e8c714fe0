// How counts and values are written for people in reports and in `show`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim {

/// "4,200": decimal digits in groups of three.
std::string FormatCount(std::int64_t count);
/// "1 access", "4,200 accesses".
std::string FormatCount(std::int64_t count, std::string_view one, std::string_view many);
/// "2.30258512 (bits 0x40135d8e)": nine significant digits name a float32 uniquely, but not a NaN.
std::string FormatLoss(std::uint32_t loss_bits);
/// A number with that many significant digits; "NaN" whatever its sign bit.
std::string FormatNumber(double value, int digits);
/// The float32 with these bits.
float LossFromBits(std::uint32_t loss_bits);
/// "version 7" for what subnet 7 wrote, "the initial weights" for -1.
std::string FormatVersion(std::int64_t seq);
/// `text` as one word of a POSIX shell, on one line: quoted only where it has to be, as $'…' where
/// it holds control characters.
std::string ShellWord(std::string_view text);
/// The same of a path, which no command takes for an option: "./-dash.db".
std::string ShellPath(std::string_view path);

}  // namespace verbatim
