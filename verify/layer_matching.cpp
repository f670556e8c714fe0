#include "verify/layer_matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recorder/step_layer.h"
#include "supernet/nearest_name.h"

namespace verbatim {
namespace {

using Index = std::unordered_map<std::string_view, std::int32_t>;

Index IndexOf(const std::vector<LayerRow>& layers) {
  Index index;
  for (const LayerRow& row : layers) index.emplace(row.name, row.layer);
  return index;
}

Error NoSuchLayer(const char* side, const std::string& name, const std::vector<LayerRow>& layers) {
  std::vector<std::string_view> names;
  for (const LayerRow& row : layers) names.push_back(row.name);
  constexpr std::size_t kListed = 20;
  std::string hint = SuggestName(name, names);
  const bool is_list = !hint.starts_with("did you mean");
  if (is_list && names.size() > kListed) hint = "verbatim show lists a record's layers.";
  return {ErrorKind::kBadInput, fmt::format("{} has no layer '{}'", side, name), std::move(hint)};
}

std::string Renamed(const std::string& name, const LayerNames& renames) {
  const auto found = renames.find(name);
  return found == renames.end() ? name : found->second;
}

/// The other names of a tied layer, in B's words.
std::set<std::string> OtherNames(std::string_view also, const LayerNames& renames) {
  std::set<std::string> names;
  while (!also.empty()) {
    const std::size_t end = also.find(", ");
    names.insert(Renamed(std::string(also.substr(0, end)), renames));
    also.remove_prefix(end == std::string_view::npos ? also.size() : end + 2);
  }
  return names;
}

/// Whether a layer bears the name, be it as one of several.
bool HasName(const Index& index, const std::vector<LayerRow>& layers, const std::string& name) {
  return index.contains(name) || std::ranges::any_of(layers, [&](const LayerRow& row) {
           const auto text = ParseStepLayer(row.op);
           return text && OtherNames(text->also, {}).contains(name);
         });
}

/// The names of B's that renamings take.
Result<std::set<std::string_view>> CheckRenames(const LayerNames& renames, const Index& of_a,
                                                const std::vector<LayerRow>& a, const Index& of_b,
                                                const std::vector<LayerRow>& b) {
  std::set<std::string_view> taken;
  for (const auto& [in_a, in_b] : renames) {
    if (!HasName(of_a, a, in_a)) return tl::unexpected(NoSuchLayer("A", in_a, a));
    if (!HasName(of_b, b, in_b)) return tl::unexpected(NoSuchLayer("B", in_b, b));
    if (!taken.insert(in_b).second) {
      return BadInput(fmt::format("B's layer '{}' is named twice", in_b),
                      "A layer of B can be one of A's only.");
    }
  }
  return taken;
}

bool IsCaptured(const LayerRow& row) {
  return !row.versioned;
}

/// Kind, type, shape, placement, and what it is tied to.
bool IsSameTensor(const LayerRow& a, const LayerRow& b, const LayerNames& renames) {
  if (a.op == b.op && renames.empty()) return true;
  const auto of_a = ParseStepLayer(a.op);
  const auto of_b = ParseStepLayer(b.op);
  return of_a && of_b && of_a->kind == of_b->kind && of_a->tensor == of_b->tensor &&
         of_a->placement == of_b->placement &&
         OtherNames(of_a->also, renames) == OtherNames(of_b->also, {});
}

Difference LayerDifference(const LayerRow* a, const LayerRow* b) {
  Difference difference;
  difference.run = RunKind::kSteps;
  difference.kind = DifferenceClass::kSpec;
  difference.what = "layer";
  if (a != nullptr) difference.layer = a->layer;
  difference.layer_name = a != nullptr ? a->name : b->name;
  const auto text = [](const LayerRow* row) {
    return row == nullptr ? std::string("no such layer")
                          : fmt::format("{}: {}", row->name, row->op);
  };
  difference.recorded = text(a);
  difference.expected = text(b);
  difference.cause = a == nullptr || b == nullptr
                         ? fmt::format("only {} has this layer", a == nullptr ? "B" : "A")
                         : "the layer has another type, shape or tying";
  return difference;
}

void AddPair(const LayerRow& a, const LayerRow& b, LayerMatching& matching) {
  const auto id = static_cast<std::int32_t>(matching.a.size());
  matching.common_of_a[static_cast<std::size_t>(a.layer)] = id;
  matching.common_of_b[static_cast<std::size_t>(b.layer)] = id;
  matching.id_in_a.push_back(a.layer);
  LayerRow row = a;
  row.layer = row.position = id;
  matching.a.push_back(row);
  row.initial_digest = b.initial_digest;
  matching.b.push_back(std::move(row));
}

}  // namespace

Result<LayerMatching> MatchLayers(const std::vector<LayerRow>& a, const std::vector<LayerRow>& b,
                                  const LayerNames& renames) {
  const Index of_a = IndexOf(a);
  const Index of_b = IndexOf(b);
  ASSIGN_OR_RETURN(const auto taken, CheckRenames(renames, of_a, a, of_b, b));
  LayerMatching matching;
  matching.common_of_a.assign(a.size(), -1);
  matching.common_of_b.assign(b.size(), -1);
  std::vector<bool> met(b.size());
  for (const LayerRow& row : a) {
    const auto found = of_b.find(Renamed(row.name, renames));
    const bool is_others = taken.contains(row.name) && !renames.contains(row.name);
    const LayerRow* const other =
        found == of_b.end() || is_others ? nullptr : &b[static_cast<std::size_t>(found->second)];
    if (other != nullptr) met[static_cast<std::size_t>(other->layer)] = true;
    if (other != nullptr && IsSameTensor(row, *other, renames)) {
      AddPair(row, *other, matching);
    } else if (other != nullptr || !IsCaptured(row)) {
      matching.differences.push_back(LayerDifference(&row, other));
    }
  }
  for (const LayerRow& row : b) {
    if (met[static_cast<std::size_t>(row.layer)] || IsCaptured(row)) continue;
    matching.differences.push_back(LayerDifference(nullptr, &row));
  }
  return matching;
}

}  // namespace verbatim
