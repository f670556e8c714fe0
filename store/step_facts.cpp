#include "store/step_facts.h"

#include <fmt/format.h>

#include "store/digest_reader.h"
#include "store/format.h"
#include "supernet/object_reader.h"

namespace verbatim {
namespace {

void AddMember(std::string& json, std::string_view name, const std::string& value) {
  json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, value);
}

template <typename Values, typename Text>
std::string ListOf(const Values& values, const Text& text) {
  std::string list = "[";
  for (const auto& value : values) {
    if (list.size() > 1) list += ',';
    list += text(value);
  }
  return list + "]";
}

std::string HexText(const Digest& digest) {
  return fmt::format("\"{}\"", ToHex(digest));
}

void ReadOutside(const JsonNode& node, ReadErrors* errors, std::vector<std::int32_t>* outside) {
  if (!ExpectKind(node, JsonKind::kArray, "outside", errors)) return;
  std::int64_t least = 0;
  for (const JsonNode& child : node.children) {
    std::int64_t layer = 0;
    ReadInteger(child, "outside", {least, kLayersMax - 1}, &layer, errors);
    outside->push_back(static_cast<std::int32_t>(layer));
    least = layer + 1;
  }
}

void ReadFacts(const JsonNode& node, ReadErrors* errors, StepFacts* facts) {
  const ObjectReader object(node, "", {"outside", "parts", "random_state", "settings"}, errors);
  if (const JsonNode* outside = object.Find("outside")) {
    ReadOutside(*outside, errors, &facts->outside);
  }
  if (const JsonNode* parts = object.Find("parts")) {
    facts->parts = ReadDigests(*parts, "parts", errors);
  }
  if (const JsonNode* state = object.Find("random_state")) {
    facts->random_state = ReadDigest(*state, "random_state", errors);
  }
}

}  // namespace

std::string EncodeFacts(const StepFacts& facts) {
  std::string json = "{";
  if (!facts.outside.empty()) {
    AddMember(json, "outside",
              ListOf(facts.outside, [](std::int32_t layer) { return std::to_string(layer); }));
  }
  if (!facts.parts.empty()) AddMember(json, "parts", ListOf(facts.parts, HexText));
  if (facts.random_state) AddMember(json, "random_state", HexText(*facts.random_state));
  if (!facts.settings.empty()) AddMember(json, "settings", SettingsToJson(facts.settings));
  return json + "}";
}

std::optional<std::string> DecodeFacts(std::string_view text, StepFacts* facts) {
  const std::int64_t step = facts->step;
  *facts = {};
  facts->step = step;
  if (text == "{}") return std::nullopt;
  const auto node = ParseJson(text, "facts");
  if (!node) return fmt::format("is no facts of a step: {}", node.error().message);
  ReadErrors errors("facts");
  ReadFacts(*node, &errors, facts);
  if (errors.first()) return fmt::format("is no facts of a step: {}", errors.first()->message);
  if (const JsonNode* settings = node->Find("settings")) {
    auto read = ReadSettings(*settings, "settings", "facts");
    if (!read) return fmt::format("is no facts of a step: {}", read.error().message);
    facts->settings = *std::move(read);
  }
  if (EncodeFacts(*facts) == text) return std::nullopt;
  return "is not the canonical JSON of a step's facts";
}

}  // namespace verbatim
