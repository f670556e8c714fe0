// `--device` and `--threads-per-stage`, as every command that computes anew has them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace verbatim {

/// Both hold their defaults and must outlive the parsing.
void AddComputeOptions(CLI::App& command, std::string& device, std::int64_t& threads_per_stage);

}  // namespace verbatim
