#include "recorder/step_spec.h"

#include <fmt/format.h>

#include "store/format.h"
#include "supernet/object_reader.h"

namespace verbatim {
namespace {

constexpr auto kRequired = Presence::kRequired;
constexpr std::int64_t kWorldSizeMax = 1 << 20;

const char* Text(bool value) {
  return value ? "true" : "false";
}

void ReadName(const ObjectReader& steps, ReadErrors* errors, std::string* name) {
  const JsonNode* const node = steps.Find("name", kRequired);
  if (node == nullptr || !ExpectKind(*node, JsonKind::kString, steps.PathOf("name"), errors)) {
    return;
  }
  *name = node->text;
}

void ReadSeed(const ObjectReader& steps, std::optional<std::uint64_t>* seed) {
  const JsonNode* const node = steps.Find("seed", kRequired);
  if (node == nullptr || node->kind == JsonKind::kNull) return;
  steps.Unsigned("seed", &seed->emplace());
}

void ReadFlag(const ObjectReader& steps, std::string_view name, bool* value) {
  if (steps.Find(name, kRequired) != nullptr) steps.Boolean(name, value);
}

/// Returns the settings, which are read by themselves.
const JsonNode* ReadFields(const JsonNode& node, ReadErrors* errors, StepSpec* spec) {
  const ObjectReader steps(
      node, "steps",
      {"every", "gradients", "name", "optimizer_state", "rank", "seed", "settings", "world_size"},
      errors);
  ReadName(steps, errors, &spec->name);
  ReadSeed(steps, &spec->seed);
  steps.Integer("every", {1, kStepMax}, &spec->every, kRequired);
  steps.Integer("world_size", {1, kWorldSizeMax}, &spec->world_size, kRequired);
  steps.Integer("rank", {0, spec->world_size - 1}, &spec->rank, kRequired);
  ReadFlag(steps, "optimizer_state", &spec->optimizer_state);
  ReadFlag(steps, "gradients", &spec->gradients);
  return steps.Find("settings", kRequired);
}

}  // namespace

std::string StepSpecToJson(const StepSpec& spec) {
  return fmt::format(
      R"({{"steps":{{"every":{},"gradients":{},"name":{},"optimizer_state":{},"rank":{},)"
      R"("seed":{},"settings":{},"world_size":{}}}}})",
      spec.every, Text(spec.gradients), SettingText(spec.name), Text(spec.optimizer_state),
      spec.rank, spec.seed ? std::to_string(*spec.seed) : "null", SettingsToJson(spec.settings),
      spec.world_size);
}

Result<StepSpec> ParseStepSpec(std::string_view text, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseJson(text, source));
  ReadErrors errors(source);
  StepSpec spec;
  const ObjectReader document(node, "", {"steps"}, &errors);
  const JsonNode* const steps = document.Find("steps", kRequired);
  const JsonNode* const settings = steps == nullptr ? nullptr : ReadFields(*steps, &errors, &spec);
  if (errors.first()) return tl::unexpected(*errors.first());
  ASSIGN_OR_RETURN(spec.settings, ReadSettings(*settings, "steps.settings", source));
  return spec;
}

Status CheckStepSpec(const StepSpec& spec) {
  if (spec.every < 1 || spec.every > kStepMax) {
    return UsageError(fmt::format("every is {}, which must be 1 or more", spec.every));
  }
  if (spec.world_size < 1 || spec.world_size > kWorldSizeMax) {
    return UsageError(
        fmt::format("world_size is {}, not in 1 to {}", spec.world_size, kWorldSizeMax));
  }
  if (spec.rank < 0 || spec.rank >= spec.world_size) {
    return UsageError(fmt::format("rank is {} of {} ranks", spec.rank, spec.world_size),
                      "ranks are 0 … world_size - 1");
  }
  return {};
}

}  // namespace verbatim
