// Compares a record with a recorded reference, as one more check of its verification.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "store/reader.h"
#include "verify/step_diff.h"
#include "verify/verdict.h"

namespace verbatim {

/// Name of the check.
inline constexpr const char* kCheckReference = "reference";

/// Adds the check "reference" to a verdict that is not damaged: every subnet that both records have
/// is compared (verify/diff.h). The verdict gets the comparison, the differences of specs, layouts
/// and environments (the latter unless a re-execution has given its own), and, where it has no
/// first difference of its own, that. The paths are as typed. BadInput where the reference itself
/// is damaged, or there is no subnet to compare. `steps`: CompareRecords'.
Status CompareAgainst(const RecordReader& reader, const RecordReader& reference,
                      const std::string& reference_path,
                      const std::function<void(std::int64_t)>& progress, Verdict& verdict,
                      const StepDiffOptions& steps = {});

}  // namespace verbatim
