#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cli/byte_count.h"
#include "cli/simulation_study.h"
#include "schedule/layer_cache.h"
#include "schedule/policy.h"
#include "supernet/nearest_name.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

Result<Sweep> ReadSweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return UsageError(fmt::format("--sweep {}: no values", text), "write --sweep stages=4,8,16");
  }
  Sweep sweep{text.substr(0, equals), {}};
  const auto keys = SweepKeys();
  if (std::find(keys.begin(), keys.end(), sweep.key) == keys.end()) {
    return UsageError(fmt::format("--sweep {}: \"{}\" cannot be swept", text, sweep.key),
                      SuggestName(sweep.key, keys));
  }
  // Explicit sizes and ranges have commas of their own.
  const bool has_commas = sweep.key == "partition" || sweep.key == "recompute";
  sweep.values = Split(text.substr(equals + 1), has_commas ? ';' : ',');
  return sweep;
}

Status SetNumber(const Sweep& sweep, const std::string& value, std::int64_t most,
                 std::int64_t* target) {
  const char* const end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, *target);
  if (error == std::errc{} && last == end && 1 <= *target && *target <= most) return {};
  return UsageError(
      fmt::format("--sweep {}: \"{}\" is no whole number from 1 to {}", sweep.key, value, most));
}

Status SetBytes(const Sweep& sweep, std::string value, std::int64_t* target) {
  const std::string problem = ByteCount(1)(value);
  if (!problem.empty()) return UsageError(fmt::format("--sweep {}: {}", sweep.key, problem));
  *target = std::stoll(value);
  return {};
}

Status SetValue(const Sweep& sweep, const std::string& value, SimulationSetting& setting) {
  if (sweep.key == "stages") return SetNumber(sweep, value, kMaxLayers, &setting.stages);
  if (sweep.key == "microbatches") {
    return SetNumber(sweep, value, kMaxMicrobatches, &setting.microbatches);
  }
  if (sweep.key == "in_flight") return SetNumber(sweep, value, kMaxSubnets, &setting.in_flight);
  if (sweep.key == "device_memory") return SetBytes(sweep, value, &setting.device_memory);
  if (sweep.key == "policy") RETURN_IF_ERROR(MakePolicy(value));
  if (sweep.key == "cache") RETURN_IF_ERROR(ParseCachePolicy(value));
  (sweep.key == "policy"      ? setting.policy
   : sweep.key == "recompute" ? setting.recompute
   : sweep.key == "cache"     ? setting.cache
                              : setting.partition) = value;
  return {};
}

}  // namespace

std::vector<std::string_view> SweepKeys() {
  return {"stages",    "microbatches", "in_flight",     "policy",
          "partition", "recompute",    "device_memory", "cache"};
}

std::string ValueOf(const SimulationSetting& setting, std::string_view key) {
  if (key == "stages") return std::to_string(setting.stages);
  if (key == "microbatches") return std::to_string(setting.microbatches);
  if (key == "in_flight") return std::to_string(setting.in_flight);
  if (key == "recompute") return setting.recompute;
  if (key == "device_memory") return std::to_string(setting.device_memory);
  if (key == "cache") return setting.cache;
  return key == "policy" ? setting.policy : setting.partition;
}

Result<std::vector<SimulationSetting>> ExpandSweep(const SimulationSetting& base,
                                                   const std::vector<std::string>& sweeps) {
  std::vector<SimulationSetting> settings{base};
  std::set<std::string> keys;
  for (const std::string& text : sweeps) {
    ASSIGN_OR_RETURN(const Sweep sweep, ReadSweep(text));
    if (!keys.insert(sweep.key).second) {
      return UsageError(fmt::format("--sweep {}: {} is swept twice", text, sweep.key));
    }
    std::vector<SimulationSetting> expanded;
    for (const SimulationSetting& setting : settings) {
      for (const std::string& value : sweep.values) {
        expanded.push_back(setting);
        RETURN_IF_ERROR(SetValue(sweep, value, expanded.back()));
      }
    }
    settings = std::move(expanded);
  }
  return settings;
}

}  // namespace verbatim
