// Explains a difference: executes the subnet at fault again on both sides, keeps every tensor, and
// finds the first one whose bits differ. No LibTorch in this header.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "replay/explanation.h"
#include "replay/reexecute.h"
#include "store/record.h"

namespace verbatim {

/// One side of a difference.
struct ExplainSide {
  RunInfo run;
  /// How to run it, and which subnets: the causal cone of the subnet at fault.
  ReexecuteOptions options;
  /// Content of the subnet in the side's record.
  Hash256 recorded_content;
};

/// `seq` is in both sides' options.subnets. Errors are Reexecute's.
Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right, std::int64_t seq);

}  // namespace verbatim
