// A study in the forms that `verbatim simulate` prints.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/output_file.h"
#include "cli/simulation_study.h"

namespace verbatim {

/// A table of the runs; of a single one its stages, too.
std::string StudyText(const SimulationStudy& study);
/// docs/cli.md, "simulate".
std::string StudyJson(const SimulationStudy& study);
/// A page with a chart of the sweep and the stages' timelines.
std::string StudyHtml(const SimulationStudy& study);
/// The timeline of the study's only run (verify/trace_writer.h).
Status WriteStudyTrace(const SimulationStudy& study, const TextSink& write);

/// "3.42 ms": a time in the costs' unit, in seconds.
std::string TimeText(const SimulationStudy& study, double time);
/// Nanoseconds of a time in the costs' unit, at most 2^60.
std::int64_t Nanoseconds(const SimulationStudy& study, double time);
/// "1.2 MB"
std::string BytesText(std::int64_t bytes);
/// "12.5 %"
std::string PercentText(double share);
/// "equal costs (a block's forward takes 1 ms)"
std::string CostsText(const SimulationStudy& study);

}  // namespace verbatim
