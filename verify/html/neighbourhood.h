// The causal neighbourhood of one subnet: whose versions it read or updated, whose those did, and
// who read or updated its own. Drawn, it shows where a difference can come from and where it goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

struct NeighbourNode {
  std::int64_t seq = 0;
  int level = 0;  ///< -2, -1: predecessors; 0: the subnet; 1, 2: successors
  Equality equality = Equality::kNotCompared;
};

/// `to` read or updated the versions of `layers` that `from` wrote, as the record observed it.
struct NeighbourEdge {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<std::string> layers;  ///< names, in ascending layer
};

struct Neighbourhood {
  static constexpr std::size_t kShownPerLevel = 8;
  static constexpr std::int64_t kLookAhead = 256;

  std::int64_t seq = 0;
  std::vector<NeighbourNode> nodes;  ///< ascending seq; none where there is no such subnet
  std::vector<NeighbourEdge> edges;  ///< between neighbouring levels
  bool complete = true;              ///< no level had more than kShownPerLevel
};

/// Reads the subnets around `seq`: at each level the kShownPerLevel that are nearest; successors
/// among the next kLookAhead subnets.
Result<Neighbourhood> ReadNeighbourhood(const RecordReader& reader,
                                        const std::vector<LayerRow>& layers, const Verdict& verdict,
                                        std::int64_t seq);

/// How subnet `seq` compares, as far as the verdict tells: its first difference and what follows
/// from it, or what was found equal.
Equality EqualityOf(const Verdict& verdict, std::int64_t seq);

}  // namespace verbatim
