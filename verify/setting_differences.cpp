#include "verify/setting_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "supernet/spec.h"

namespace verbatim {
namespace {

using Json = nlohmann::json;

/// Every scalar of a JSON document by its dotted path.
std::map<std::string, std::string> Flatten(const std::string& text) {
  std::map<std::string, std::string> fields;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fields;
  const Json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string path = pointer.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    fields[path] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return fields;
}

bool IsCosine(const RunInfo& run) {
  const auto spec = ParseSpec(run.spec_json, "the recorded spec");
  return spec && spec->training.lr.kind == LrKind::kCosine;
}

}  // namespace

std::vector<SettingDifference> SpecDifferences(const RunInfo& a, const RunInfo& b) {
  auto fields_a = Flatten(a.spec_json);
  auto fields_b = Flatten(b.spec_json);
  std::set<std::string> keys;
  for (const auto& [key, value] : fields_a) keys.insert(key);
  for (const auto& [key, value] : fields_b) keys.insert(key);
  std::vector<SettingDifference> differences;
  for (const std::string& key : keys) {
    if (fields_a[key] != fields_b[key]) differences.push_back({key, fields_a[key], fields_b[key]});
  }
  return differences;
}

std::vector<SettingDifference> LayoutDifferences(const RunInfo& a, const RunInfo& b) {
  std::vector<SettingDifference> differences;
  const auto compare = [&](const char* key, const auto& of_a, const auto& of_b) {
    if (of_a != of_b) {
      differences.push_back({key, fmt::format("{}", of_a), fmt::format("{}", of_b)});
    }
  };
  compare("stages", a.stages, b.stages);
  compare("in_flight", a.in_flight, b.in_flight);
  compare("partition", a.partition, b.partition);
  compare("policy", a.policy, b.policy);
  compare("device", a.device, b.device);
  compare("record_level", a.record_level, b.record_level);
  compare("tool_version", a.tool_version, b.tool_version);
  return differences;
}

bool BearsOnSubnets(std::string_view key, const RunInfo& a, const RunInfo& b) {
  if (key == "training.subnets") return IsCosine(a) || IsCosine(b);
  for (const std::string_view prefix :
       {"name", "record.", "evaluation.", "data.folder", "sampler.file", "sampler.of.file"}) {
    if (key.substr(0, prefix.size()) == prefix) return false;
  }
  return true;
}

}  // namespace verbatim
