// Numbers of bytes as options take them: plain, or with KiB, MiB or GiB.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace verbatim {

/// Accepts `67108864`, `65536KiB`, `64MiB`, `1GiB`, from `least` bytes on, and leaves the plain
/// number, for an option that is a std::int64_t.
CLI::Validator ByteCount(std::int64_t least);

}  // namespace verbatim
