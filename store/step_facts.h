// What only a step of a step run has: the trainer's own number of it, and what is known of the
// circumstances that its results follow from (docs/format.md, "steps").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "store/settings.h"

namespace verbatim {

struct StepFacts {
  std::int64_t step = 0;               ///< by the trainer's own count, at most kStepMax
  std::optional<Digest> random_state;  ///< of all generators, before the step
  Settings settings;                   ///< learning rates, momentum, …
  /// Layers, ascending, that somebody wrote between the recorded step before and this one's first
  /// forward pass, other than by an update.
  std::vector<std::int32_t> outside;
  std::vector<Digest> parts;  ///< of the parts of its batch in order, where it has several
  bool operator==(const StepFacts&) const = default;
};

/// All but `step` as canonical JSON: members in the order of their names, each only where there is
/// something of it, no spaces: {"outside":[3],"settings":{"lr":0.1}}. Settings' texts must be
/// SettingText's, the list ascending.
std::string EncodeFacts(const StepFacts& facts);
/// What is wrong with a text, such as "is no JSON: …"; nothing where it is exactly what EncodeFacts
/// writes. Leaves `facts->step` alone.
std::optional<std::string> DecodeFacts(std::string_view text, StepFacts* facts);

}  // namespace verbatim
