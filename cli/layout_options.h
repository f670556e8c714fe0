// The layout of a run, as every command that executes subnets takes it: `--stages`, `--in-flight`,
// `--partition`, `--costs`, `--device-memory`, `--recompute`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace verbatim {

struct LayoutOptions {
  std::int64_t stages = 1;
  bool stages_were_given = false;  ///< whether --stages was typed
  std::int64_t in_flight = 4;
  std::string partition = "balanced";          ///< as MakePartition takes it
  std::optional<std::filesystem::path> costs;  ///< a cost file to balance by
  /// What each stage may hold of layers, in bytes; absent: all of them are there.
  std::optional<std::int64_t> device_memory;
  std::string recompute = "none";  ///< as RecomputePlan::Make takes it

  bool is_sequential_reference() const { return stages == 1 && in_flight == 1; }
};

/// `layout` holds the defaults and must outlive the parsing.
void AddLayoutOptions(CLI::App& command, LayoutOptions& layout);

/// Likewise `--device-memory` alone.
CLI::Option* AddDeviceMemoryOption(CLI::App& command, std::optional<std::int64_t>& bytes);
/// `--recompute` alone; likewise.
CLI::Option* AddRecomputeOption(CLI::App& command, std::string& recompute);

}  // namespace verbatim
