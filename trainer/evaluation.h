// Held-out accuracy of subnets with shared weights (docs/spec.md, section 10).
#pragma once

#include <functional>
#include <vector>

#include "store/record.h"
#include "trainer/experiment.h"

namespace verbatim {

/// Evaluates `spec.evaluation.subnets` keyed random subnets, one after another in the calling
/// thread, and leaves the experiment as it was. After each, `on_progress` (may be empty) gets the
/// number done and says whether to go on. Throws what LibTorch throws.
std::vector<EvaluationRow> EvaluateSubnets(const Experiment& experiment,
                                           const std::function<bool(std::int64_t)>& on_progress);

}  // namespace verbatim
