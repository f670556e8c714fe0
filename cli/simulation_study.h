// What `verbatim simulate` is asked, and what it found: one simulation per setting of the sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schedule/simulate/simulation.h"
#include "supernet/costs.h"

namespace verbatim {

/// What a sweep may vary.
struct SimulationSetting {
  std::string policy = "causal";
  std::int64_t stages = 4;
  std::int64_t microbatches = 0;  ///< 0: the spec's
  std::int64_t in_flight = 30;
  std::string partition = "balanced";
  std::string recompute = "none";
  std::int64_t device_memory = 0;  ///< bytes for layers on each stage; 0: room for all
  std::string cache = "lookahead";
};

/// "stages", "microbatches", "in_flight", "policy", "partition", "recompute", "device_memory",
/// "cache".
std::vector<std::string_view> SweepKeys();
/// The value of one of those keys, as it is typed.
std::string ValueOf(const SimulationSetting& setting, std::string_view key);

/// The values of `base` replaced by every combination of what sweeps such as "stages=4,8" name, the
/// last one changing fastest. kUsage for another key or value, and for a key named twice.
Result<std::vector<SimulationSetting>> ExpandSweep(const SimulationSetting& base,
                                                   const std::vector<std::string>& sweeps);

struct SimulationRequest {
  std::filesystem::path spec;
  std::optional<std::filesystem::path> data;
  SimulationSetting setting;
  std::vector<std::string> sweeps;
  std::string costs = "analytic";       ///< "equal", "analytic" or a cost file
  std::optional<std::int64_t> subnets;  ///< instead of the spec's
  double bandwidth = 0.0;               ///< 10^9 bytes a second; 0: transfers take no time
  double latency = 0.0;                 ///< microseconds
  double host_bandwidth = 0.0;          ///< 10^9 bytes a second; 0: copying a layer takes no time
  std::int64_t look_ahead = 64;         ///< subnets that a cache knows beyond those admitted
  std::optional<double> unit_time;      ///< microseconds that a unit of the costs takes
  std::int64_t timeline_begin = 0;      ///< subnets whose tasks are kept
  std::int64_t timeline_end = 12;
};

/// The cost file; empty where costs are not read.
std::filesystem::path CostFileOf(const SimulationRequest& request);

struct SimulationRun {
  SimulationSetting setting;  ///< micro-batches as they were
  bool is_causal = false;     ///< the policy's runs are equal to the sequential reference
  SimulationReport report;
};

struct SimulationStudy {
  std::string spec;  ///< as typed
  std::string name;
  std::string sampler;
  std::int64_t blocks = 0;
  std::int64_t layers = 0;
  std::int64_t subnets = 0;
  CostSource costs = CostSource::kEqual;
  std::string costs_text;          ///< "equal", "analytic", or the file as typed
  double seconds_per_unit = 1.0;   ///< of the costs
  std::vector<std::string> swept;  ///< keys, in the order of the sweeps
  std::vector<SimulationRun> runs;

  /// Whether any of them computes anything again.
  bool recomputes() const;
};

/// `progress`, if given, is told how many subnets of all runs are finished, and of how many.
/// kUsage where a setting makes no sense; errors are also those of the spec, its data and costs.
Result<SimulationStudy> Study(const SimulationRequest& request,
                              const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace verbatim
