// Whom to blame for a difference: what else is known of two executions can say that a number that
// differs is nobody's fault, or somebody else's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verify/verdict.h"

namespace verbatim {

/// Where numeric facts differ, numbers that differ prove nothing: their class becomes environment.
void BlameEnvironment(const std::vector<EnvironmentDifference>& environment,
                      Difference& difference);

/// Where the runs were asked to compute different things, `fields` of their specs, what they did
/// differs for that: its class becomes spec. `fields`: those that bear on it. Not so versions where
/// a schedule was broken; where both runs are causal, they follow from choices and delays.
void BlameSpec(const std::vector<SettingDifference>& fields, bool are_causal,
               Difference& difference);

/// Where `violation` broke causality while the subnet at fault was in flight too, it may have
/// written what that was still using, such as running statistics (versions are observed only once
/// per access): the class becomes schedule.
void BlameSchedule(const std::optional<Difference>& violation, std::int64_t in_flight,
                   Difference& difference);

}  // namespace verbatim
