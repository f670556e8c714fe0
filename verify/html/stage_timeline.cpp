#include "verify/html/stage_timeline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "store/format.h"

namespace verbatim {
namespace {

/// More subnets than this are never under way beside the window's: bounds what is read.
constexpr std::int64_t kInFlightMax = 64;

Status ReadBars(const RecordReader& reader, std::int64_t first, std::int64_t last,
                std::vector<TimelineBar>& bars) {
  for (std::int64_t seq = std::max<std::int64_t>(0, first); seq <= last; ++seq) {
    ASSIGN_OR_RETURN(const auto subnet, reader.Subnet(seq, {false, false, true}));
    if (!subnet) continue;
    for (const ActivityRow& task : subnet->activities) bars.push_back({seq, task});
  }
  return {};
}

bool Overlaps(const TimelineBar& bar, const StageTimeline& timeline) {
  return bar.task.begin_ns < timeline.end_ns && bar.task.end_ns > timeline.begin_ns;
}

/// From the first to the last of these tasks.
void ChooseWindow(const std::vector<TimelineBar>& bars, StageTimeline& timeline) {
  timeline.begin_ns = std::numeric_limits<std::int64_t>::max();
  timeline.end_ns = std::numeric_limits<std::int64_t>::min();
  for (const TimelineBar& bar : bars) {
    timeline.begin_ns = std::min(timeline.begin_ns, bar.task.begin_ns);
    timeline.end_ns = std::max(timeline.end_ns, bar.task.end_ns);
  }
}

/// Halves the window towards `center_ns` until few enough tasks are in it.
void NarrowWindow(const std::vector<TimelineBar>& bars, std::int64_t center_ns,
                  StageTimeline& timeline) {
  const auto is_too_wide = [&] {
    const auto count = std::count_if(
        bars.begin(), bars.end(), [&](const TimelineBar& bar) { return Overlaps(bar, timeline); });
    return static_cast<std::size_t>(count) > StageTimeline::kBarsMax;
  };
  constexpr int kHalvingsMax = 64;  // an int64 has no more
  for (int i = 0; i < kHalvingsMax && is_too_wide(); ++i) {
    timeline.begin_ns += (center_ns - timeline.begin_ns) / 2;
    timeline.end_ns -= (timeline.end_ns - center_ns) / 2;
  }
}

/// When subnet `seq` was under way, or else the first that is there.
std::int64_t CenterOf(const std::vector<TimelineBar>& bars, std::int64_t seq) {
  const auto bar = std::find_if(bars.begin(), bars.end(),
                                [seq](const TimelineBar& one) { return one.seq == seq; });
  return bar == bars.end() ? bars.front().task.begin_ns : bar->task.begin_ns;
}

void AddBars(const std::vector<TimelineBar>& bars, StageTimeline& timeline) {
  for (const TimelineBar& bar : bars) {
    const auto stage = static_cast<std::size_t>(bar.task.stage);
    if (!Overlaps(bar, timeline) || stage >= timeline.busy.size()) continue;
    if (timeline.bars.size() >= StageTimeline::kBarsMax) return;
    const std::int64_t begin = std::max(bar.task.begin_ns, timeline.begin_ns);
    const std::int64_t end = std::min(bar.task.end_ns, timeline.end_ns);
    timeline.busy[stage].Add(bar.task.phase, end - begin);
    timeline.bars.push_back(bar);
  }
}

}  // namespace

void StageBusy::Add(Phase phase, std::int64_t duration_ns) {
  std::int64_t& spent = phase == Phase::kForward    ? forward_ns
                        : phase == Phase::kBackward ? backward_ns
                                                    : update_ns;
  // Durations are as recorded, and any number of them may be damaged.
  spent = std::clamp(spent + duration_ns, -kTimeMaxNs, kTimeMaxNs);
}

Result<StageTimeline> ReadStageTimeline(const RecordReader& reader, const RunInfo& run,
                                        std::optional<std::int64_t> focus) {
  StageTimeline timeline;
  timeline.busy.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(run.stages, 0, 1024)));
  const std::int64_t center = focus.value_or(0);
  const std::int64_t first = std::max<std::int64_t>(0, center - StageTimeline::kSubnets / 2);
  const std::int64_t last = first + StageTimeline::kSubnets - 1;
  const std::int64_t beside = std::clamp<std::int64_t>(run.in_flight, 0, kInFlightMax);
  std::vector<TimelineBar> bars;
  RETURN_IF_ERROR(ReadBars(reader, first - beside, last + beside, bars));
  std::vector<TimelineBar> inner;
  std::copy_if(bars.begin(), bars.end(), std::back_inserter(inner),
               [&](const TimelineBar& bar) { return first <= bar.seq && bar.seq <= last; });
  if (inner.empty()) return timeline;
  ChooseWindow(inner, timeline);
  NarrowWindow(bars, CenterOf(inner, center), timeline);
  std::sort(bars.begin(), bars.end(), [](const TimelineBar& a, const TimelineBar& b) {
    return std::tuple(a.task.stage, a.task.begin_ns) < std::tuple(b.task.stage, b.task.begin_ns);
  });
  AddBars(bars, timeline);
  return timeline;
}

}  // namespace verbatim
