// Which facts of two numeric environments differ, and which of those may change bits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "supernet/spec.h"
#include "verify/verdict.h"

namespace verbatim {

/// The numeric profile of a run; kNative where its spec cannot be parsed.
Numerics ProfileOf(const RunInfo& run);

/// Whether the environment fact `key` may change a bit of a run with this profile. Facts under
/// "info." only help to find the machine again. Under the profiles other than kNative which
/// processor it is does not matter either ("cpu.vendor", "cpu.model", "cpu.family_model",
/// "cpu.stepping"): to make that so is what they are for. Of "cpu.instruction_sets" see below.
bool IsNumericKey(std::string_view key, Numerics numerics = Numerics::kNative);

/// Facts that differ, in the order of `recorded`, then those only `here`. Numeric are those whose
/// key is and whose value is known on both sides: what another version of the program did not note
/// is listed, but decides nothing. Under the profiles other than kNative the instruction sets are
/// numeric where a side lacks one that the profile asks for (supernet/numeric_profile.h).
std::vector<EnvironmentDifference> CompareEnvironments(const std::vector<EnvironmentRow>& recorded,
                                                       const std::vector<EnvironmentRow>& here,
                                                       Numerics numerics = Numerics::kNative);

/// "cpu.model: recorded AMD EPYC, here Intel Core Processor (Haswell)". Of instruction sets only
/// those that one side has.
std::string DescribeDifference(const EnvironmentDifference& difference);

/// Why a re-execution is refused: kFailed, naming every numeric fact that differs. Nothing where
/// none does. A comparison of two records with each other is never refused.
std::optional<Error> EnvironmentRefusal(const std::vector<EnvironmentDifference>& differences);

}  // namespace verbatim
