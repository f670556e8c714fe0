// Which subnets of a record are executed again: all, a prefix, the causal cone of one subnet or of
// one version of a layer, or a random draw with its cones. No LibTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

/// What was asked for; at most one of the four. None: all subnets.
struct ReplaySelection {
  std::optional<std::int64_t> until;  ///< subnets 0 … until
  std::optional<std::int64_t> subnet;
  struct Version {
    std::string layer;    ///< by name or id
    std::int64_t at = 0;  ///< the version that is current after this subnet
  };
  std::optional<Version> version;
  struct Draw {
    std::int64_t count = 0;
    std::uint64_t seed = 0;
  };
  std::optional<Draw> draw;
};

struct ReplayPlan {
  std::vector<std::int64_t> subnets;   ///< to execute, ascending, closed under predecessors
  std::vector<std::int64_t> selected;  ///< those asked for, ascending; a part of `subnets`
  std::int64_t recorded = 0;           ///< how many could be selected
  std::string description;             ///< "8 of 300 subnets (the causal cone of subnet 12)"

  bool is_whole() const { return static_cast<std::int64_t>(subnets.size()) == recorded; }
};

/// Plans over the record's first `recorded` subnets, which must be sound (verify/examine.h).
/// kUsage where the selection names what the record does not hold.
Result<ReplayPlan> PlanReplay(const RecordReader& reader, std::int64_t recorded,
                              const ReplaySelection& selection);

/// Threads per stage as recorded, which bear on the bits; 1 where nothing is recorded. BadInput
/// where the value makes no sense.
Result<std::int64_t> RecordedThreads(const std::vector<EnvironmentRow>& environment);

}  // namespace verbatim
