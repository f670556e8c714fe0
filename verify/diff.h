// Compares two records: of one spec run twice, or of two specs that lay out the same layers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "store/reader.h"
#include "verify/step_diff.h"
#include "verify/verdict.h"

namespace verbatim {

/// Names of a diff's checks, in the order in which its verdict lists them.
inline constexpr const char* kCheckRecordA = "record A";
inline constexpr const char* kCheckRecordB = "record B";
inline constexpr const char* kDiffSpec = "spec";
inline constexpr const char* kDiffLayers = "layers";
inline constexpr const char* kDiffData = "data set";
inline constexpr const char* kDiffSubnets = "subnets";
inline constexpr const char* kDiffSteps = "steps";  ///< of two step runs, the last one
inline constexpr const char* kDiffEvaluations = "evaluations";

/// A verdict of kind kDiff: `recorded` values are A's, `expected` and `here` ones B's.
///
/// Both records are examined first (verify/examine.h); a damaged one ends it, and the verdict says
/// which. Specs that lay out other layers are a difference, and nothing more is compared. Otherwise
/// the subnets that both have from 0 on are compared to the last, and where both runs are complete
/// and equally long their evaluations too. Where specs or numeric environments differ, a difference
/// in numbers is of that class. The paths are as typed, for messages. `progress` (may be empty) is
/// told the number of subnets read of either record. Errors are the
/// readers'; also BadInput where all else agrees and no subnet could be compared.
///
/// Two step runs are compared by CompareStepRecords, with `steps`. kUsage where only one is a step
/// run, or `steps` asks for something of runs that are none.
Result<Verdict> CompareRecords(const RecordReader& a, const std::string& a_path,
                               const RecordReader& b, const std::string& b_path,
                               const std::function<void(std::int64_t)>& progress = {},
                               const StepDiffOptions& steps = {});

}  // namespace verbatim
