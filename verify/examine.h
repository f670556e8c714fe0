// Examines a record by itself: integrity, then the stream, then the causal audit. Executes nothing
// and needs no data; one pass over the rows, in memory that does not grow with the run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// Names of the checks, in the order in which a verdict lists them.
inline constexpr const char* kCheckFile = "file";
inline constexpr const char* kCheckRun = "run";
inline constexpr const char* kCheckLayers = "layers";
inline constexpr const char* kCheckSubnets = "subnets";
inline constexpr const char* kCheckStream = "stream";
inline constexpr const char* kCheckCausality = "causality";
inline constexpr const char* kCheckEvaluations = "evaluations";
inline constexpr const char* kCheckReexecution = "re-execution";

/// `record` is the path as typed, for messages. `progress` (may be empty) is told the number of
/// subnets looked at. What cannot be read makes a damaged verdict, never an error. The verdict's
/// re-execution check is left "not run".
Verdict ExamineRecord(const RecordReader& reader, const std::string& record,
                      const std::function<void(std::int64_t)>& progress = {});

}  // namespace verbatim
