// A record's layers as positions and candidates: the search space as far as a record tells it,
// without the shapes that only the data would give.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "supernet/choice_space.h"
#include "supernet/spec.h"

namespace verbatim {

class LayerTable {
 public:
  /// BadInput where the rows are not the layers of a search space: ids 0 … n-1 position by position
  /// and candidate by candidate, at least a stem and a head, each with one candidate.
  static Result<LayerTable> Build(std::vector<LayerRow> layers);
  /// Of a step run: each layer is a position of its own, and no block has candidates to choose
  /// from. BadInput where ids or positions are not 0 … n-1.
  static Result<LayerTable> BuildForSteps(std::vector<LayerRow> layers);
  /// The one that fits.
  static Result<LayerTable> BuildFor(RunKind kind, std::vector<LayerRow> layers);

  const std::vector<LayerRow>& layers() const { return layers_; }
  /// `id` must be a layer's.
  const LayerRow& layer(std::int32_t id) const { return layers_[id]; }
  int positions() const { return static_cast<int>(first_layer_.size()) - 1; }
  int blocks() const { return blocks_; }
  int candidates(int position) const { return first_layer_[position + 1] - first_layer_[position]; }
  /// Layer id of candidate 0 of `position`.
  std::int32_t FirstLayer(int position) const { return first_layer_[position]; }
  /// Layer id at `position` under choices that are in range.
  std::int32_t LayerAt(int position, std::span<const std::uint16_t> choices) const {
    const bool is_block = position > 0 && position <= blocks();
    return first_layer_[position] + (is_block ? choices[position - 1] : 0);
  }
  /// "block3.1", or "layer 99" where there is no such layer.
  std::string Name(std::int32_t id) const;
  /// By name ("block3.1") or by id ("17").
  std::optional<std::int32_t> Find(std::string_view name_or_id) const;

  /// How many subnets late the layer is read (docs/spec.md, "Delayed layers"); 0 for all layers
  /// until ReadDelays.
  std::int64_t delay(std::int32_t id) const { return delays_[id]; }
  const std::vector<std::int64_t>& delays() const { return delays_; }
  /// Takes the delays from the spec, which lays out these layers (DifferenceFromSpec).
  void ReadDelays(const Spec& spec);
  /// What the spec's sampler draws from.
  ChoiceSpace Choices() const;

  /// What is wrong with choices (one candidate per block); nothing where they are in range.
  std::optional<std::string> ChoicesProblem(std::span<const std::uint16_t> choices) const;

 private:
  std::vector<LayerRow> layers_;
  int blocks_ = 0;
  std::vector<int> first_layer_;      ///< by position, and one past the end
  std::vector<std::int64_t> delays_;  ///< by layer
};

/// Where the layers differ from those that `spec` lays out (names, operators, what is versioned);
/// nothing where they agree. Shapes and initial weights are not compared.
std::optional<std::string> DifferenceFromSpec(const LayerTable& table, const Spec& spec);

}  // namespace verbatim
