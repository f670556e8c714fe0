// The spec of a step run: what its trainer said before the first step (docs/format.md, "steps").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/settings.h"

namespace verbatim {

/// Bits of the loss of a step whose trainer told none: the quiet NaN. A loss that is this very NaN
/// cannot be told from none.
inline constexpr std::uint32_t kNoLoss = 0x7fc00000;

struct StepSpec {
  std::string name;                   ///< of the run, for people; may be empty
  std::optional<std::uint64_t> seed;  ///< that the trainer says it used
  std::int64_t every = 1;             ///< of so many steps one is recorded
  std::int64_t rank = 0;
  std::int64_t world_size = 1;  ///< ranks of the run, each with a record of its own
  /// Which digests accesses of parameters may have besides the weights, at a level that has any. A
  /// parameter has none where there is nothing: frozen, not reached, an optimizer without state.
  bool optimizer_state = true;
  bool gradients = false;
  Settings settings;  ///< what does not change from step to step
  bool operator==(const StepSpec&) const = default;
};

/// RunInfo::spec_json of a step run, canonical: every field, names ascending, no spaces.
/// {"steps":{"every":1,"gradients":false,…}}
std::string StepSpecToJson(const StepSpec& spec);

/// kBadInput "source:line:column: steps.every: …" where a field is missing, unknown, of another
/// type or out of range: every is 1 or more, 0 <= rank < world_size <= 2^20.
Result<StepSpec> ParseStepSpec(std::string_view text, const std::string& source);

/// ParseStepSpec's ranges; kUsage with the field.
Status CheckStepSpec(const StepSpec& spec);

}  // namespace verbatim
