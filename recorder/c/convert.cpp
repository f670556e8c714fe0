#include "recorder/c/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "store/format.h"
#include "store/settings.h"

namespace verbatim::c {
namespace {

constexpr std::size_t kRankMax = 64;

/// A list that stands beside its length; kUsage where it is missing.
template <typename T>
Result<std::span<const T>> List(const T* first, std::size_t count, const char* what) {
  if (first != nullptr || count == 0) return std::span(first, count);
  return UsageError(fmt::format("{} is null, but has {} entries", what, count));
}

/// The caller's struct in today's size: what it does not have is as `init` leaves it.
template <typename T, typename Init>
Result<T> Current(const T* given, Init init, const char* what) {
  T current;
  init(&current, sizeof current);
  if (given == nullptr) return UsageError(fmt::format("{} is null", what));
  if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof current) {
    return UsageError(fmt::format("{} has {} bytes, of which this library knows {}", what,
                                  given->struct_bytes, sizeof current),
                      fmt::format("begin with {}_init, and update the library", what));
  }
  std::memcpy(&current, given, given->struct_bytes);
  return current;
}

Digest DigestOf(const verbatim_digest& digest) {
  Digest copy;
  std::copy(std::begin(digest.bytes), std::end(digest.bytes), copy.bytes.begin());
  return copy;
}

std::optional<Digest> OptionalDigest(const verbatim_digest* digest) {
  if (digest == nullptr) return std::nullopt;
  return DigestOf(*digest);
}

Result<Settings> SettingsOf(const char* json, const char* what) {
  if (json == nullptr || *json == '\0') return Settings{};
  auto settings = ParseSettings(json, what);
  if (settings) return settings;
  return UsageError(settings.error().message, settings.error().hint);
}

/// Values as people write them: strings without their quotes.
Result<std::vector<EnvironmentRow>> EnvironmentOf(const char* json) {
  std::vector<EnvironmentRow> rows;
  ASSIGN_OR_RETURN(const Settings facts, SettingsOf(json, "environment_json"));
  for (const auto& [key, text] : facts) {
    const auto node = ParseJson(text, "environment_json");
    rows.push_back({key, node && node->kind == JsonKind::kString ? node->text : text});
  }
  return rows;
}

Result<StepLayerKind> KindOf(const verbatim_layer& layer, std::size_t index) {
  switch (layer.kind) {
    case VERBATIM_PARAMETER:
      return StepLayerKind::kParameter;
    case VERBATIM_BUFFER:
      return StepLayerKind::kBuffer;
    case VERBATIM_CAPTURED:
      return StepLayerKind::kCaptured;
  }
  return UsageError(fmt::format("layer {} is of kind {}, which there is not", index, layer.kind));
}

Result<std::span<const std::int64_t>> ShapeOf(const std::int64_t* shape, std::size_t rank,
                                              std::string_view name) {
  if (rank <= kRankMax) return List(shape, rank, "a shape");
  return UsageError(
      fmt::format("tensor '{}' has {} dimensions, more than {}", name, rank, kRankMax));
}

Result<StepLayer> ConvertLayer(const verbatim_layer& layer, std::size_t index) {
  StepLayer converted;
  ASSIGN_OR_RETURN(converted.kind, KindOf(layer, index));
  converted.name = Text(layer.name);
  converted.placement = Text(layer.placement);
  converted.initial_digest = DigestOf(layer.initial);
  ASSIGN_OR_RETURN(const auto also, List(layer.also, layer.also_count, "also"));
  for (const char* name : also) converted.also.push_back(Text(name));
  if (converted.kind == StepLayerKind::kCaptured) return converted;
  converted.dtype = static_cast<DType>(layer.dtype);
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(layer.shape, layer.rank, converted.name));
  converted.shape.assign(shape.begin(), shape.end());
  return converted;
}

Result<StepDigests> ConvertDigests(const verbatim_layer_digests& digests) {
  constexpr std::int32_t kAll = VERBATIM_WEIGHTS | VERBATIM_OPTIMIZER_STATE | VERBATIM_GRADIENTS;
  if ((digests.present & ~kAll) != 0) {
    return UsageError(fmt::format("layer {} has digests {}, of which only 1, 2 and 4 are known",
                                  digests.layer, digests.present));
  }
  StepDigests converted;
  converted.layer = digests.layer;
  if ((digests.present & VERBATIM_WEIGHTS) != 0) converted.weights = DigestOf(digests.weights);
  if ((digests.present & VERBATIM_OPTIMIZER_STATE) != 0) {
    converted.optimizer_state = DigestOf(digests.optimizer_state);
  }
  if ((digests.present & VERBATIM_GRADIENTS) != 0) {
    converted.gradients = DigestOf(digests.gradients);
  }
  return converted;
}

Result<StepFacts> ConvertFacts(const verbatim_step& step) {
  StepFacts facts;
  facts.step = step.step;
  facts.random_state = OptionalDigest(step.random_state);
  ASSIGN_OR_RETURN(facts.settings, SettingsOf(step.settings_json, "settings_json"));
  ASSIGN_OR_RETURN(const auto outside, List(step.outside, step.outside_count, "outside"));
  facts.outside.assign(outside.begin(), outside.end());
  ASSIGN_OR_RETURN(const auto parts, List(step.parts, step.part_count, "parts"));
  for (const verbatim_digest& part : parts) facts.parts.push_back(DigestOf(part));
  return facts;
}

}  // namespace

std::string Text(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

Result<RunParts> ConvertRun(const verbatim_run* given) {
  ASSIGN_OR_RETURN(const verbatim_run run, Current(given, verbatim_run_init, "verbatim_run"));
  RunParts parts;
  StepSpec& spec = parts.run.spec;
  spec.name = Text(run.name);
  if (run.has_seed != 0) spec.seed = run.seed;
  spec.every = run.every;
  spec.rank = run.rank;
  spec.world_size = run.world_size;
  spec.optimizer_state = run.optimizer_state != 0;
  spec.gradients = run.gradients != 0;
  ASSIGN_OR_RETURN(spec.settings, SettingsOf(run.settings_json, "settings_json"));
  ASSIGN_OR_RETURN(parts.environment, EnvironmentOf(run.environment_json));
  parts.run.record_level = Text(run.record_level);
  parts.run.tool_version = kLibraryVersion;
  std::error_code ignored;
  parts.run.folder = run.folder == nullptr ? std::filesystem::current_path(ignored).string()
                                           : std::string(run.folder);
  parts.run.command_line = Text(run.command_line);
  parts.run.device = Text(run.device);
  parts.run.steps_planned = run.steps_planned;
  parts.options.overwrite = run.overwrite != 0;
  parts.options.head_file = Text(run.head_file);
  parts.options.head_every = run.head_every;
  return parts;
}

Result<std::vector<StepLayer>> ConvertLayers(const verbatim_layer* layers, std::size_t count) {
  if (count > static_cast<std::size_t>(kLayersMax)) {
    return UsageError(fmt::format("{} layers, more than {}", count, kLayersMax));
  }
  ASSIGN_OR_RETURN(const auto list, List(layers, count, "layers"));
  std::vector<StepLayer> converted;
  for (const verbatim_layer& layer : list) {
    ASSIGN_OR_RETURN(StepLayer one, ConvertLayer(layer, converted.size()));
    converted.push_back(std::move(one));
  }
  return converted;
}

Result<StepRow> ConvertStep(const verbatim_step* given) {
  ASSIGN_OR_RETURN(const verbatim_step step, Current(given, verbatim_step_init, "verbatim_step"));
  StepRow row;
  ASSIGN_OR_RETURN(row.facts, ConvertFacts(step));
  if (step.has_loss != 0) row.loss_bits = std::bit_cast<std::uint32_t>(step.loss);
  row.batch = OptionalDigest(step.batch);
  ASSIGN_OR_RETURN(const auto layers, List(step.layers, step.layer_count, "layers"));
  row.layers.reserve(layers.size());
  for (const verbatim_layer_digests& layer : layers) {
    ASSIGN_OR_RETURN(const StepDigests digests, ConvertDigests(layer));
    row.layers.push_back(digests);
  }
  ASSIGN_OR_RETURN(const auto captured, List(step.captured, step.captured_count, "captured"));
  for (const verbatim_captured& tensor : captured) {
    row.captured.push_back({tensor.occurrence, tensor.layer, DigestOf(tensor.digest)});
  }
  return row;
}

Result<TensorView> ConvertTensor(const verbatim_tensor& tensor) {
  const std::string name = Text(tensor.name);
  const auto dtype = static_cast<DType>(tensor.dtype);
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(tensor.shape, tensor.rank, name));
  std::size_t bytes = 0;
  if (!TensorBytes(dtype, shape.data(), shape.size(), &bytes)) {
    return UsageError(
        fmt::format("tensor '{}': dtype {} or a dimension is out of range", name, tensor.dtype));
  }
  if (bytes != tensor.bytes) {
    return UsageError(fmt::format("tensor '{}' has {} bytes, but its dtype and shape ask for {}",
                                  name, tensor.bytes, bytes),
                      "tensors must be contiguous");
  }
  if (tensor.data == nullptr && bytes > 0) {
    return UsageError(fmt::format("tensor '{}' has no data", name));
  }
  return TensorView{dtype, shape, tensor.data};
}

}  // namespace verbatim::c
