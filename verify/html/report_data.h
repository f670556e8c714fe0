// What an HTML report shows besides the verdict, read from its record or records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/reader.h"
#include "verify/html/loss_curve.h"
#include "verify/html/neighbourhood.h"
#include "verify/html/stage_timeline.h"
#include "verify/verdict.h"

namespace verbatim {

struct ReportData {
  std::vector<EnvironmentRow> environment;
  std::vector<LayerRow> layers;
  LossCurve losses;
  std::optional<LossCurve> reference_losses;
  StageTimeline timeline;
  std::vector<StageBusy> busy;  ///< by stage, over the whole run
  std::int64_t run_ns = 0;      ///< from the first task's begin to the last one's end
  std::optional<Neighbourhood> neighbourhood;
  std::optional<RunInfo> reference_run;
  std::vector<std::string> problems;  ///< what could not be read, and is missing for that
};

/// Reads the record once, streaming, and some subnets of it again. `reference` may be null. Never
/// fails: a damaged record has a report too, of what could be read.
ReportData ReadReportData(const Verdict& verdict, const RecordReader& record,
                          const RecordReader* reference);

/// "block3" of "block3.1", for each position; "stem", "head".
std::vector<std::string> PositionNames(const std::vector<LayerRow>& layers);

}  // namespace verbatim
