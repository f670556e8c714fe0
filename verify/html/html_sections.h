// The sections of an HTML report that need no chart. Each is complete HTML, readable without
// scripts; an empty string where there is nothing to say.
#pragma once

#include <string>

#include "verify/html/report_data.h"
#include "verify/verdict.h"

namespace verbatim {

/// The verdict as a word with a sign, its summary, and how the run ended where it is incomplete.
std::string VerdictHtml(const Verdict& verdict);

/// The first difference with both values, cause and next command.
std::string FirstDifferenceHtml(const Verdict& verdict);

/// What was held against what: the two sides' settings, and the counts.
std::string ComparedHtml(const Verdict& verdict, const ReportData& data);

/// Every check with its outcome and problems.
std::string ChecksHtml(const Verdict& verdict);

/// The record's numeric environment; facts that differ come first and are marked.
std::string EnvironmentHtml(const Verdict& verdict, const ReportData& data);

/// Origins, and the subnets that are tainted; of a whole comparison.
std::string OriginsHtml(const Verdict& verdict);

/// Commands to go on with.
std::string NextCommandsHtml(const Verdict& verdict);

/// What could not be read.
std::string ProblemsHtml(const ReportData& data);

}  // namespace verbatim
