#include "verify/layer_table.h"

#include <fmt/format.h>

#include <charconv>

#include "supernet/search_space.h"

namespace verbatim {
namespace {

bool HasParameters(OperatorKind kind) {
  return kind != OperatorKind::kAvgPool && kind != OperatorKind::kMaxPool &&
         kind != OperatorKind::kSkip;
}

/// Stem, blocks with their repeats, head.
std::int64_t CountPositions(const Spec& spec) {
  std::int64_t count = 2;
  for (const BlockSpec& block : spec.supernet.blocks) count += block.repeat;
  return count;
}

/// One position per block, repeats expanded; pointers into `spec`.
std::vector<const BlockSpec*> Positions(const Spec& spec) {
  std::vector<const BlockSpec*> positions{&spec.supernet.stem};
  for (const BlockSpec& block : spec.supernet.blocks) {
    positions.insert(positions.end(), static_cast<std::size_t>(block.repeat), &block);
  }
  positions.push_back(&spec.supernet.head);
  return positions;
}

std::string ExpectedName(int position, int candidate, int positions) {
  if (position == 0) return "stem";
  if (position == positions - 1) return "head";
  return fmt::format("block{}.{}", position - 1, candidate);
}

std::optional<std::string> LayerDifference(const LayerRow& row, const std::string& name,
                                           const BlockSpec& block, const OperatorSpec& op) {
  if (row.name != name) return fmt::format("is called '{}', not '{}'", row.name, name);
  if (row.op != Describe(op)) return fmt::format("is '{}', not '{}'", row.op, Describe(op));
  const bool versioned = block.trainable && HasParameters(op.kind);
  if (row.versioned != versioned) {
    return fmt::format("is {}versioned, but should {}be", row.versioned ? "" : "not ",
                       versioned ? "" : "not ");
  }
  return std::nullopt;
}

}  // namespace

Result<LayerTable> LayerTable::Build(std::vector<LayerRow> layers) {
  LayerTable table;
  for (const LayerRow& row : layers) {
    const auto id = static_cast<std::int32_t>(&row - layers.data());
    if (row.layer != id) return BadInput(fmt::format("layer {} has no row", id));
    const int open_position = static_cast<int>(table.first_layer_.size()) - 1;
    const bool starts = row.candidate == 0;
    if (starts) table.first_layer_.push_back(id);
    const int position = starts ? open_position + 1 : open_position;
    if (row.position != position || position < 0 ||
        row.candidate != id - table.first_layer_[position]) {
      return BadInput(
          fmt::format("layer {} is said to be candidate {} of position {}, out of order", id,
                      row.candidate, row.position));
    }
  }
  table.first_layer_.push_back(static_cast<int>(layers.size()));
  table.layers_ = std::move(layers);
  table.delays_.assign(table.layers_.size(), 0);
  if (table.positions() < 2) return BadInput("there is no stem and head among the layers");
  if (table.candidates(0) != 1 || table.candidates(table.positions() - 1) != 1) {
    return BadInput("the stem or the head has more than one candidate");
  }
  table.blocks_ = table.positions() - 2;
  return table;
}

Result<LayerTable> LayerTable::BuildForSteps(std::vector<LayerRow> layers) {
  LayerTable table;
  for (const LayerRow& row : layers) {
    const auto id = static_cast<std::int32_t>(&row - layers.data());
    if (row.layer != id) return BadInput(fmt::format("layer {} has no row", id));
    if (row.position != id || row.candidate != 0) {
      return BadInput(fmt::format("layer {} is said to be candidate {} of position {}", id,
                                  row.candidate, row.position));
    }
    table.first_layer_.push_back(id);
  }
  table.first_layer_.push_back(static_cast<int>(layers.size()));
  table.layers_ = std::move(layers);
  table.delays_.assign(table.layers_.size(), 0);
  return table;
}

Result<LayerTable> LayerTable::BuildFor(RunKind kind, std::vector<LayerRow> layers) {
  return kind == RunKind::kSteps ? BuildForSteps(std::move(layers)) : Build(std::move(layers));
}

void LayerTable::ReadDelays(const Spec& spec) {
  const std::vector<const BlockSpec*> blocks = Positions(spec);
  for (const LayerRow& row : layers_) delays_[row.layer] = blocks[row.position]->delay;
}

ChoiceSpace LayerTable::Choices() const {
  ChoiceSpace space;
  space.versioned.resize(static_cast<std::size_t>(blocks()));
  for (const LayerRow& row : layers_) {
    const bool is_block = row.position > 0 && row.position <= blocks();
    if (is_block) space.versioned[row.position - 1].push_back(row.versioned);
  }
  return space;
}

std::string LayerTable::Name(std::int32_t id) const {
  const bool exists = id >= 0 && id < static_cast<std::int32_t>(layers_.size());
  return exists ? layers_[id].name : fmt::format("layer {}", id);
}

std::optional<std::int32_t> LayerTable::Find(std::string_view name_or_id) const {
  for (const LayerRow& row : layers_) {
    if (row.name == name_or_id) return row.layer;
  }
  std::int32_t id = -1;
  const char* end = name_or_id.data() + name_or_id.size();
  const auto [stop, error] = std::from_chars(name_or_id.data(), end, id);
  const bool is_id = error == std::errc() && stop == end && id >= 0 &&
                     id < static_cast<std::int32_t>(layers_.size());
  return is_id ? std::optional(id) : std::nullopt;
}

std::optional<std::string> LayerTable::ChoicesProblem(
    std::span<const std::uint16_t> choices) const {
  if (choices.size() != static_cast<std::size_t>(blocks())) {
    return fmt::format("has {} choices for {} blocks", choices.size(), blocks());
  }
  for (int block = 0; block < blocks(); ++block) {
    if (choices[block] >= candidates(block + 1)) {
      return fmt::format("chooses candidate {} of block {}, which has {}", choices[block], block,
                         candidates(block + 1));
    }
  }
  return std::nullopt;
}

std::optional<std::string> DifferenceFromSpec(const LayerTable& table, const Spec& spec) {
  const std::int64_t wanted = CountPositions(spec);
  if (table.positions() != wanted) {
    return fmt::format("the layers have {} positions, the spec has {}", table.positions(), wanted);
  }
  // Expanded only now: a damaged spec may ask for more than fits into memory.
  const std::vector<const BlockSpec*> positions = Positions(spec);
  const int count = table.positions();
  for (int position = 0; position < count; ++position) {
    const BlockSpec& block = *positions[position];
    const int candidates = static_cast<int>(block.candidates.size());
    if (table.candidates(position) != candidates) {
      return fmt::format("position {} has {} layers, the spec has {} candidates", position,
                         table.candidates(position), candidates);
    }
    for (int candidate = 0; candidate < candidates; ++candidate) {
      const LayerRow& row = table.layer(table.FirstLayer(position) + candidate);
      const auto difference = LayerDifference(row, ExpectedName(position, candidate, count), block,
                                              block.candidates[candidate]);
      if (difference) return fmt::format("layer {} {}", row.layer, *difference);
    }
  }
  return std::nullopt;
}

}  // namespace verbatim
