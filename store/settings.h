// Settings of a step run: what a trainer says of itself, by name (docs/format.md, "steps"). A value
// is the text of one JSON scalar in a form of which there is one for each value, so that equal
// settings have equal text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "supernet/json_reader.h"

namespace verbatim {

/// Name to text: {"lr", "0.1"}, {"optimizer", "\"sgd\""}, {"nesterov", "true"}.
using Settings = std::map<std::string, std::string>;

/// A JSON string; bytes that are no UTF-8 are replaced by U+FFFD.
std::string SettingText(std::string_view value);
std::string SettingText(const char* value);
std::string SettingText(const std::string& value);
std::string SettingText(bool value);
std::string SettingText(std::int64_t value);
/// The fewest digits that give the float64 back, without a fraction where it is a whole number that
/// fits 64 bits, so that 1 and 1.0 are equal; "NaN", "Infinity" and "-Infinity" as JSON strings.
std::string SettingText(double value);
/// Of a string, a number or a boolean; nothing of another kind.
std::optional<std::string> SettingText(const JsonNode& node);

/// A JSON object of them, canonical: names ascending by their bytes, no spaces.
std::string SettingsToJson(const Settings& settings);
/// Of an object in any form. kBadInput with line, column and name where it is none, or a value is
/// of another kind; `source` names the text.
Result<Settings> ParseSettings(std::string_view text, const std::string& source);
/// Likewise of a value within a document. What is wrong with it, as "settings.lr: …".
Result<Settings> ReadSettings(const JsonNode& node, const std::string& path,
                              const std::string& source);

}  // namespace verbatim
