// `--stages S` and `--in-flight N`, as every command that executes subnets has them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace verbatim {

/// Both hold their defaults and must outlive the parsing.
void AddLayoutOptions(CLI::App& command, std::int64_t& stages, std::int64_t& in_flight);

}  // namespace verbatim
