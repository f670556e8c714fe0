#include "base/check.h"
#include "fuzz/target.h"
#include "recorder/step_layer.h"
#include "recorder/step_spec.h"
#include "store/step_facts.h"

namespace verbatim::fuzz {
namespace {

// What is accepted is, byte for byte, what is written for it.
void CheckFacts(std::string_view text) {
  StepFacts facts;
  if (DecodeFacts(text, &facts)) return;
  VERBATIM_CHECK(EncodeFacts(facts) == text, "{}", EncodeFacts(facts));
}

// Any form is accepted; what is written for it reads the same again.
void CheckSettings(std::string_view text) {
  const auto settings = ParseSettings(text, "input");
  if (!settings) return;
  const auto again = ParseSettings(SettingsToJson(*settings), "written");
  VERBATIM_CHECK(again.has_value(), "{}", again.error().message);
  VERBATIM_CHECK(*again == *settings, "{}", SettingsToJson(*settings));
}

void CheckSpec(std::string_view text) {
  const auto spec = ParseStepSpec(text, "input");
  if (!spec) return;
  VERBATIM_CHECK(CheckStepSpec(*spec).has_value(), "a spec that was read is refused");
  const auto again = ParseStepSpec(StepSpecToJson(*spec), "written");
  VERBATIM_CHECK(again.has_value(), "{}", again.error().message);
  VERBATIM_CHECK(*again == *spec, "{}", StepSpecToJson(*spec));
}

void CheckLayer(std::string_view text) {
  const auto layer = ParseStepLayer(text);
  if (!layer) return;
  VERBATIM_CHECK(layer->tensor.empty() == (layer->kind == StepLayerKind::kCaptured), "{}", text);
}

}  // namespace

// The first byte says what the others are.
void RunStep(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  switch (input[0]) {
    case 'f':
      return CheckFacts(text);
    case 's':
      return CheckSettings(text);
    case 'r':
      return CheckSpec(text);
    case 'l':
      return CheckLayer(text);
    default:
      return;
  }
}

std::vector<std::string> StepSeeds() {
  StepFacts facts;
  facts.random_state.emplace();
  facts.settings = {{"lr", "0.1"}, {"mode", "\"a\""}};
  facts.outside = {0, 3};
  facts.parts.resize(2);
  StepSpec spec;
  spec.seed = 7;
  spec.settings = facts.settings;
  StepLayer layer;
  layer.shape = {128, 64};
  layer.placement = "shard 0 of 2";
  layer.also = {"a", "b"};
  return {"f" + EncodeFacts(facts),
          "s"
          R"({"a": 1e-3, "b": -0, "c": true, "d": "\u00fc"})",
          "r" + StepSpecToJson(spec), "l" + DescribeStepLayer(layer)};
}

}  // namespace verbatim::fuzz
