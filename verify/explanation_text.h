// An explanation in words, for all reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "replay/explanation.h"
#include "verify/verdict.h"

namespace verbatim {

/// Label and text, in order: ("where", "block3.1 (conv k3), backward: gradient of weight"), …; for
/// a difference without an explanation, why there is none; empty where none was asked for.
std::vector<std::pair<std::string, std::string>> ExplanationLines(const Verdict& verdict);

}  // namespace verbatim
