#include "recorder/step_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace verbatim {
namespace {

constexpr std::array<std::pair<std::string_view, StepLayerKind>, 3> kKinds = {
    {{"parameter", StepLayerKind::kParameter},
     {"buffer", StepLayerKind::kBuffer},
     {"captured", StepLayerKind::kCaptured}}};
constexpr std::string_view kAlso = " also ";
static_assert(kPlacementThenAlso.substr(1) == kAlso);

std::string_view NameOf(StepLayerKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].first;
}

/// Takes `text` up to `end` off its front, and `end` with it; nothing where there is no `end`.
std::optional<std::string_view> TakeUntil(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// A placement and its closing bracket, off the front: it may hold brackets itself.
std::optional<std::string_view> TakePlacement(std::string_view& text) {
  const std::size_t also = text.find(kPlacementThenAlso);
  if (also == std::string_view::npos && !text.ends_with(')')) return std::nullopt;
  const std::size_t end = also == std::string_view::npos ? text.size() - 1 : also;
  const std::string_view placement = text.substr(0, end);
  text.remove_prefix(end + 1);
  return placement;
}

/// What follows the kind, of a parameter or buffer.
bool TakeTensor(std::string_view& text, StepLayerText& layer) {
  if (!TakePrefix(text, " ")) return false;
  const std::string_view begin = text;
  if (!TakeUntil(text, "]")) return false;
  layer.tensor = begin.substr(0, begin.size() - text.size());
  return layer.tensor.find('[') != std::string_view::npos;
}

}  // namespace

std::string DescribeStepLayer(const StepLayer& layer) {
  std::string text(NameOf(layer.kind));
  if (layer.kind != StepLayerKind::kCaptured) {
    text += fmt::format(" {}[{}]", DTypeName(layer.dtype), fmt::join(layer.shape, ","));
  }
  if (!layer.placement.empty()) text += fmt::format(" ({})", layer.placement);
  if (!layer.also.empty()) text += fmt::format("{}{}", kAlso, fmt::join(layer.also, ", "));
  return text;
}

std::optional<StepLayerText> ParseStepLayer(std::string_view op) {
  for (const auto& [name, kind] : kKinds) {
    std::string_view rest = op;
    if (!TakePrefix(rest, name)) continue;
    StepLayerText layer;
    layer.kind = kind;
    if (kind != StepLayerKind::kCaptured && !TakeTensor(rest, layer)) return std::nullopt;
    if (TakePrefix(rest, " (")) {
      const auto placement = TakePlacement(rest);
      if (!placement) return std::nullopt;
      layer.placement = *placement;
    }
    if (TakePrefix(rest, kAlso)) layer.also = std::exchange(rest, {});
    return rest.empty() ? std::optional(layer) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<LayerRow> StepLayerRows(std::span<const StepLayer> layers) {
  std::vector<LayerRow> rows;
  for (const StepLayer& layer : layers) {
    LayerRow row;
    row.layer = row.position = static_cast<std::int32_t>(rows.size());
    row.name = layer.name;
    row.op = DescribeStepLayer(layer);
    row.versioned = layer.kind != StepLayerKind::kCaptured;
    if (row.versioned) row.initial_digest = layer.initial_digest;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace verbatim
