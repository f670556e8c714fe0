// Renders a verdict for people and for machines. Pure: no terminal, no clock.
#pragma once

#include <string>
#include <utility>

#include "verify/verdict.h"

namespace verbatim {

/// "damaged", "different", "intact", "equal".
const char* VerdictWord(const Verdict& verdict);

/// "subnet 12, layer block3.1, forward"; "before the first subnet".
std::string PlaceText(const Difference& difference);

/// What the two values of a difference are called: "recorded", "expected"; of two records, neither
/// of which is the expected one, "A", "B".
std::pair<const char*, const char*> ValueNames(const Verdict& verdict);

/// What the two records of a comparison are called: "A", "B" by `diff`, else "record", "reference".
std::pair<const char*, const char*> RecordNames(const Verdict& verdict);

/// One line, without an end of line: "300 subnets, 4,200 accesses: equal to the sequential
/// reference".
std::string Summary(const Verdict& verdict);

/// Plain text ending in Summary's line. Environment differences come before everything that was
/// found, so that nothing is read as a mismatch without them.
std::string RenderText(const Verdict& verdict);

/// One JSON object, indented by two spaces, with an end of line; docs/cli.md states its fields.
std::string RenderJson(const Verdict& verdict, const std::string& tool_version);

/// What a re-execution computes: "the sequential reference", "a replay on 3 stages".
std::string ReferenceText(const Coverage& coverage);

/// What an equal draw of subnets says of all of them, as a sentence; empty where none was drawn.
std::string ConfidenceText(const Coverage& coverage);

/// "interrupted after 120 of 300 subnets", "failed after 7 of 300 subnets: disk full"; empty for a
/// complete run.
std::string IncompleteText(const RunInfo& run, std::int64_t subnets);

}  // namespace verbatim
