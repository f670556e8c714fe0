// What a comparison of two executions of one stream found, as plain values: of a record with a
// re-execution, or of two records. Filled by run_comparison.h, written by the reports.
//
// Words: a difference whose inputs were all equal is an *origin*; one that follows from an earlier
// difference is *tainted*. The inputs of subnet j are its choices, its batch, and the versions of
// the layers that it reads, by content.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/difference.h"

namespace verbatim {

/// How one access, or one subnet, compares. In ascending order of interest.
enum class Equality : std::uint8_t { kNotCompared, kEqual, kTainted, kOrigin };

/// Subnets first … last, both included.
struct SeqRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool operator==(const SeqRange&) const = default;
};

/// Subnet × position, coarse enough to be drawn: each column stands for `subnets_per_column`
/// subnets and shows the highest Equality among them. Memory does not grow with the run.
struct EqualityMap {
  static constexpr std::int64_t kColumnsMax = 256;
  std::int64_t subnets_per_column = 1;
  std::int32_t positions = 0;
  std::vector<Equality> cells;  ///< column × positions, column by column
  /// What the positions are called, where they are not the record's; columns are then those of the
  /// steps compared, in order.
  std::vector<std::string> names;

  std::int64_t columns() const {
    return positions == 0 ? 0 : static_cast<std::int64_t>(cells.size()) / positions;
  }
};

/// When a layer's versions first differed, and how often.
struct LayerTaint {
  std::int32_t layer = 0;
  std::string name;
  std::int64_t first_seq = 0;
  std::int64_t accesses = 0;  ///< that differ, origins included
};

struct Comparison {
  std::int64_t subnets_compared = 0;
  bool is_prefix = false;          ///< a side has further subnets
  std::int64_t subnets_equal = 0;  ///< in everything that both sides hold
  std::int64_t accesses_compared = 0;
  std::int64_t accesses_different = 0;
  /// In causal order, at most kOriginsKept; one per subnet, the first within it.
  std::vector<Difference> origins;
  std::int64_t origin_count = 0;
  /// Subnets that differ and are no origin, as ascending ranges that do not touch.
  std::vector<SeqRange> tainted;
  std::int64_t tainted_count = 0;
  /// Layers with differing versions, by first_seq, then by layer.
  std::vector<LayerTaint> layers;
  EqualityMap map;
};
inline constexpr std::size_t kOriginsKept = 100;

}  // namespace verbatim
