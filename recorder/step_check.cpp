#include "recorder/step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "store/format.h"

namespace verbatim {
namespace {

Status CheckLayer(const StepLayer& layer, std::size_t index) {
  if (layer.name.empty()) return UsageError(fmt::format("layer {} has no name", index));
  if (layer.placement.find(kPlacementThenAlso) != std::string::npos) {
    return UsageError(fmt::format("layer '{}': its placement '{}' holds '{}'", layer.name,
                                  layer.placement, kPlacementThenAlso),
                      "other names of a layer are given as such");
  }
  if (layer.kind == StepLayerKind::kCaptured) return {};
  std::size_t bytes = 0;
  if (TensorBytes(layer.dtype, layer.shape.data(), layer.shape.size(), &bytes)) return {};
  return UsageError(fmt::format("layer '{}': its dtype (number {}) or a dimension is out of range",
                                layer.name, static_cast<std::uint32_t>(layer.dtype)));
}

Status CheckLevel(const StepRun& run, std::span<const StepLayer> layers) {
  const std::string& level = run.record_level;
  if (level != "losses" && level != "weights" && level != "full") {
    return UsageError(fmt::format("record level '{}'", level), "one of: losses, weights, full");
  }
  if (level == "full") return {};
  if (run.spec.gradients) return UsageError("gradients need the record level 'full'");
  for (const StepLayer& layer : layers) {
    if (layer.kind != StepLayerKind::kCaptured) continue;
    return UsageError(
        fmt::format("captured tensor '{}' needs the record level 'full'", layer.name));
  }
  return {};
}

}  // namespace

Status CheckStepRun(const StepRun& run, std::span<const StepLayer> layers,
                    std::span<const EnvironmentRow> environment) {
  RETURN_IF_ERROR(CheckStepSpec(run.spec));
  RETURN_IF_ERROR(CheckLevel(run, layers));
  if (run.steps_planned < 0) {
    return UsageError(fmt::format("{} steps are planned", run.steps_planned), "0 is: not known");
  }
  if (layers.size() > static_cast<std::size_t>(kLayersMax)) {
    return UsageError(fmt::format("{} layers, more than {}", layers.size(), kLayersMax));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    RETURN_IF_ERROR(CheckLayer(layers[i], i));
    if (names.insert(layers[i].name).second) continue;
    return UsageError(fmt::format("two layers are called '{}'", layers[i].name),
                      "put the model's or the optimizer's name before them");
  }
  std::set<std::string_view> keys;
  for (const EnvironmentRow& row : environment) {
    if (keys.insert(row.key).second) continue;
    return UsageError(fmt::format("the environment has '{}' twice", row.key));
  }
  return {};
}

StepRowCheck::StepRowCheck(const StepRun& run, const std::vector<LayerRow>& layers,
                           const std::vector<StepLayerKind>& kinds)
    : run_(run), layers_(layers), kinds_(kinds) {
  for (const LayerRow& layer : layers_) {
    if (layer.versioned) versioned_.push_back(layer.layer);
  }
}

Status StepRowCheck::Check(const StepRow& row, std::int64_t last_step) const {
  const std::int64_t step = row.facts.step;
  if (step < 0 || step > kStepMax) {
    return UsageError(fmt::format("step {} is not in 0 to {}", step, kStepMax));
  }
  if (step <= last_step) {
    return UsageError(fmt::format("step {} comes after step {}", step, last_step),
                      "the numbers of recorded steps must ascend");
  }
  RETURN_IF_ERROR(CheckLayers(row));
  RETURN_IF_ERROR(CheckFacts(row.facts));
  return CheckCaptured(row);
}

Status StepRowCheck::CheckLayers(const StepRow& row) const {
  if (run_.record_level == "losses") {
    if (row.layers.empty()) return {};
    return UsageError("the record level 'losses' has no digests of layers");
  }
  for (std::size_t i = 0; i < std::max(row.layers.size(), versioned_.size()); ++i) {
    if (i >= versioned_.size()) {
      return UsageError(fmt::format("{} layers have digests, of {} that are parameters or buffers",
                                    row.layers.size(), versioned_.size()));
    }
    if (i >= row.layers.size() || row.layers[i].layer != versioned_[i]) {
      return UsageError(
          fmt::format("step {} lacks layer {} ('{}')", row.facts.step, versioned_[i],
                      NameOf(versioned_[i])),
          "give the digests of every parameter and buffer, by ascending number of its layer");
    }
    RETURN_IF_ERROR(CheckDigests(row.layers[i]));
  }
  return {};
}

Status StepRowCheck::CheckDigests(const StepDigests& digests) const {
  if (!digests.weights) {
    return UsageError(
        fmt::format("layer '{}' lacks a digest of its weights", NameOf(digests.layer)));
  }
  const bool is_parameter =
      kinds_[static_cast<std::size_t>(digests.layer)] == StepLayerKind::kParameter;
  RETURN_IF_ERROR(Has(digests.optimizer_state, digests, "optimizer state",
                      is_parameter && run_.spec.optimizer_state));
  return Has(digests.gradients, digests, "gradients", is_parameter && run_.spec.gradients);
}

Status StepRowCheck::Has(const std::optional<Digest>& digest, const StepDigests& of,
                         const char* what, bool is_allowed) const {
  if (!digest || is_allowed) return {};
  return UsageError(
      fmt::format("layer '{}' has a digest of {}", NameOf(of.layer), what),
      fmt::format("only parameters have one, of a run whose spec says that it records {}", what));
}

Status StepRowCheck::CheckFacts(const StepFacts& facts) const {
  for (const std::int32_t layer : facts.outside) {
    if (IsLayer(layer) && layers_[static_cast<std::size_t>(layer)].versioned) continue;
    return UsageError(
        fmt::format("layer {}, written from outside, is no parameter or buffer", layer));
  }
  StepFacts decoded;
  const auto problem = DecodeFacts(EncodeFacts(facts), &decoded);
  if (!problem) return {};
  return UsageError(fmt::format("what step {} says of itself {}", facts.step, *problem),
                    "settings are JSON strings, numbers and booleans; layers ascend");
}

Status StepRowCheck::CheckCaptured(const StepRow& row) const {
  std::set<std::tuple<std::int32_t, std::int32_t>> seen;
  for (const ActivationRow& captured : row.captured) {
    const bool is_known =
        IsLayer(captured.position) &&
        kinds_[static_cast<std::size_t>(captured.position)] == StepLayerKind::kCaptured;
    if (!is_known || captured.microbatch < 0) {
      return UsageError(fmt::format("step {} captured layer {}, occurrence {}, which there is not",
                                    row.facts.step, captured.position, captured.microbatch));
    }
    if (seen.emplace(captured.microbatch, captured.position).second) continue;
    return UsageError(fmt::format("step {} captured '{}' twice as occurrence {}", row.facts.step,
                                  NameOf(captured.position), captured.microbatch));
  }
  return {};
}

const std::string& StepRowCheck::NameOf(std::int32_t layer) const {
  return layers_[static_cast<std::size_t>(layer)].name;
}

bool StepRowCheck::IsLayer(std::int32_t layer) const {
  return layer >= 0 && layer < std::ssize(layers_);
}

}  // namespace verbatim
