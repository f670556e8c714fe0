// When each stage worked on what: a window of a run's activity that is small enough to be drawn,
// and how busy each stage was.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

struct TimelineBar {
  std::int64_t seq = 0;
  ActivityRow task;
};

/// Nanoseconds that a stage spent, by phase; each at most kTimeMaxNs (store/format.h).
struct StageBusy {
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t update_ns = 0;

  std::int64_t total_ns() const { return forward_ns + backward_ns + update_ns; }
  void Add(Phase phase, std::int64_t duration_ns);
};

/// All tasks during [begin_ns, end_ns), a window around the tasks of some kSubnets subnets;
/// narrower where that would be too many to draw. Without activity there are no bars.
struct StageTimeline {
  static constexpr std::int64_t kSubnets = 12;
  static constexpr std::size_t kBarsMax = 2000;

  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<TimelineBar> bars;  ///< that overlap the window, by stage, then begin
  std::vector<StageBusy> busy;    ///< by stage, within the window

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// The window around subnet `focus`, or at the start of the run. `run` is the record's.
Result<StageTimeline> ReadStageTimeline(const RecordReader& reader, const RunInfo& run,
                                        std::optional<std::int64_t> focus);

}  // namespace verbatim
