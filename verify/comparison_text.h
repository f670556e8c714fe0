// What a comparison found, in words: origins, tainted subnets, and how the taint spread.
#pragma once

#include <string>
#include <vector>

#include "verify/comparison.h"

namespace verbatim {

/// "151–299 but 160", "3, 7–9", "3, 7–9 and 12 ranges more"; ascending ranges that do not touch.
std::string RangesText(const std::vector<SeqRange>& ranges);

/// Lines of a text report, each with an end of line; empty where nothing differs.
std::string ComparisonText(const Comparison& comparison, RunKind kind = RunKind::kSupernet);

}  // namespace verbatim
