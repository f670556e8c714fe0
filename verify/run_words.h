// What the rows of a run are called: subnets of a supernet, steps of another trainer.
#pragma once

#include <cstdint>
#include <string>

#include "store/record.h"

namespace verbatim {

struct RunWords {
  const char* one;   ///< "subnet", "step"
  const char* many;  ///< "subnets", "steps"
};
RunWords WordsOf(RunKind kind);

/// "1 subnet", "4,200 steps".
std::string CountRows(std::int64_t count, RunKind kind);

/// "250 of 300 subnets"; "250 steps" where nobody said how many were planned.
std::string CountText(const RunInfo& run, std::int64_t count);

/// The number that people know a row by: a step's own one, else seq.
std::int64_t NumberOf(const SubnetRow& row);
/// "subnet 12", "step 1200".
std::string NameOf(const SubnetRow& row);

}  // namespace verbatim
