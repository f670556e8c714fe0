// A verdict as JUnit XML, the form of test results that CI systems read.
#pragma once

#include <string>

#include "verify/verdict.h"

namespace verbatim {

/// One test suite for the record, one test case per check: a failed check is a failure, one that
/// shows damage an error, one that was not run is skipped. Every failed case ends with the first
/// difference. Facts of run and environment, counts and summary are properties. Where there is a
/// difference that no check failed for, a case "difference" carries it. Pure: no times.
std::string RenderJunit(const Verdict& verdict, const std::string& tool_version);

}  // namespace verbatim
