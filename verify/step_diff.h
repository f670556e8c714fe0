// Compares the records of two step runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "store/reader.h"
#include "verify/layer_matching.h"
#include "verify/verdict.h"

namespace verbatim {

/// How layers and rows of two step runs are held against each other.
struct StepDiffOptions {
  LayerNames renames;
  bool replicas = false;  ///< two ranks of one run: StepScope's
};

/// CompareRecords (verify/diff.h) of two step runs. Layers meet by name and steps by number; what
/// one side alone has is told, and the rest is compared. Runs of another number of ranks see other
/// batches, and are compared as replicas are.
///
/// Initial weights are compared where both records begin at the same step, or one begins right
/// after a step that the other has. Also kUsage where `replicas` is asked for of records that are
/// not two ranks of one run; kBadInput where `renames` do not fit, or the runs have no step in
/// common.
Result<Verdict> CompareStepRecords(const RecordReader& a, const std::string& a_path,
                                   const RecordReader& b, const std::string& b_path,
                                   const StepDiffOptions& options,
                                   const std::function<void(std::int64_t)>& progress);

}  // namespace verbatim
