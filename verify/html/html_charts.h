// The sections of an HTML report that hold a chart: figure, legend, caption, the data as a table;
// and the numbers that report.js draws. An empty string where there is nothing to draw.
#pragma once

#include <string>

#include "verify/html/report_data.h"
#include "verify/verdict.h"

namespace verbatim {

/// JSON that may stand inside <script>. By chart, each null where there is nothing to draw:
///   loss:     record, reference (name, points [seq, loss], windows [first, last, lowest, mean,
///             highest]), focus
///   timeline: length_ns, begin_ns, stages, bars [stage, begin, end, phase, seq, microbatch] in ns
///             of the window, busy (share of the window by stage), focus
///   map:      positions (names), subnets_per_column, subnets, cells (digits of Equality, column by
///             column)
///   graph:    nodes [seq, level, Equality], edges [from, to, layers]
std::string ChartsJson(const Verdict& verdict, const ReportData& data);

std::string LossHtml(const Verdict& verdict, const ReportData& data);
std::string TimelineHtml(const Verdict& verdict, const ReportData& data);
/// With the tables of origins and of tainted layers.
std::string EqualityMapHtml(const Verdict& verdict, const ReportData& data);
std::string NeighbourhoodHtml(const Verdict& verdict, const ReportData& data);

}  // namespace verbatim
