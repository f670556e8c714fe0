// Whether recorded choices are what the record's spec draws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "store/record.h"
#include "supernet/sampler.h"
#include "supernet/spec.h"
#include "verify/layer_table.h"
#include "verify/verdict.h"

namespace verbatim {

class StreamCheck {
 public:
  /// Keeps references: `spec` and `table`, which has the spec's layers, outlive it. A list file
  /// that the sampler reads may have gone or changed since: choices then cannot be drawn, or
  /// differ.
  StreamCheck(const RunInfo& run, const Spec& spec, const LayerTable& table);

  /// Why subnets' choices cannot be drawn again here; empty where they can.
  const std::string& obstacle() const { return obstacle_; }
  /// "sampler uniform draws with seed 7", "subnets.json lists", "sampler reorder makes of what
  /// subnets.json lists".
  const std::string& source() const { return source_; }

  /// The difference where subnet `seq` < subnets_planned did not choose what the sampler draws.
  /// Call only without an obstacle.
  std::optional<Difference> CompareSubnet(std::int64_t seq, std::span<const std::uint16_t> choices);
  /// Likewise for evaluated subnet `index`, which every spec draws uniformly.
  std::optional<Difference> CompareEvaluation(std::int64_t index,
                                              std::span<const std::uint16_t> choices);

 private:
  const Spec& spec_;
  const LayerTable& table_;
  const ChoiceSpace space_;
  std::string obstacle_;
  std::string source_;
  std::unique_ptr<Sampler> sampler_;  ///< none where there is an obstacle
};

/// The first block whose choices differ, as a difference of class spec with neither cause nor next
/// command. Nothing where they are equal. `recorded` is in range.
std::optional<Difference> CompareChoices(const LayerTable& table,
                                         std::span<const std::uint16_t> recorded,
                                         std::span<const std::uint16_t> expected);

}  // namespace verbatim
