#include "store/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "supernet/object_reader.h"

namespace verbatim {
namespace {

constexpr double kInt64Limit = 9223372036854775808.0;
constexpr double kUint64Limit = 2 * kInt64Limit;

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string WholeNumber(const JsonNode& node) {
  const bool is_negative = node.negative && node.magnitude != 0;
  return fmt::format("{}{}", is_negative ? "-" : "", node.magnitude);
}

}  // namespace

std::string SettingText(std::string_view value) {
  return Quoted(value);
}

std::string SettingText(const char* value) {
  return Quoted(value);
}

std::string SettingText(const std::string& value) {
  return Quoted(value);
}

std::string SettingText(bool value) {
  return value ? "true" : "false";
}

std::string SettingText(std::int64_t value) {
  return std::to_string(value);
}

std::string SettingText(double value) {
  if (std::isnan(value)) return Quoted("NaN");
  if (std::isinf(value)) return Quoted(value > 0 ? "Infinity" : "-Infinity");
  if (std::trunc(value) == value && value >= -kInt64Limit && value < kUint64Limit) {
    if (value < 0) return SettingText(static_cast<std::int64_t>(value));
    return std::to_string(static_cast<std::uint64_t>(value));
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::optional<std::string> SettingText(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kString:
      return SettingText(node.text);
    case JsonKind::kBoolean:
      return SettingText(node.boolean);
    case JsonKind::kInteger:
      return WholeNumber(node);
    case JsonKind::kNumber:
      return SettingText(node.number);
    default:
      return std::nullopt;
  }
}

std::string SettingsToJson(const Settings& settings) {
  std::string json = "{";
  for (const auto& [name, text] : settings) {
    json += fmt::format("{}{}:{}", json.size() > 1 ? "," : "", Quoted(name), text);
  }
  return json + "}";
}

Result<Settings> ReadSettings(const JsonNode& node, const std::string& path,
                              const std::string& source) {
  ReadErrors errors(source);
  Settings settings;
  if (ExpectKind(node, JsonKind::kObject, path, &errors)) {
    for (const JsonNode& child : node.children) {
      if (auto text = SettingText(child)) {
        settings[child.key] = *std::move(text);
      } else {
        errors.Report(
            child.position, path.empty() ? child.key : path + "." + child.key,
            fmt::format("expected a string, a number or a boolean, found {}", Describe(child.kind)),
            "give each entry of it a name of its own");
      }
    }
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  return settings;
}

Result<Settings> ParseSettings(std::string_view text, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseJson(text, source));
  return ReadSettings(node, "", source);
}

}  // namespace verbatim
