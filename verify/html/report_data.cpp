#include "verify/html/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "verify/run_words.h"

namespace verbatim {
namespace {

/// Keeps the value, or says why there is none.
template <typename T>
void Take(Result<T> result, T& value, ReportData& data) {
  if (result) {
    value = *std::move(result);
  } else {
    data.problems.push_back(std::move(result).error().message);
  }
}

struct Span {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
};

void AddActivity(const SubnetRow& subnet, ReportData& data, Span& span) {
  for (const ActivityRow& task : subnet.activities) {
    span.begin_ns = std::min(span.begin_ns, task.begin_ns);
    span.end_ns = std::max(span.end_ns, task.end_ns);
    const auto stage = static_cast<std::size_t>(task.stage);
    if (stage < data.busy.size()) data.busy[stage].Add(task.phase, task.end_ns - task.begin_ns);
  }
}

/// Returns the last subnet's seq, where there is one.
std::optional<std::int64_t> ReadWholeRun(const RecordReader& record, ReportData& data) {
  std::optional<std::int64_t> last;
  Span span;
  LossCurveBuilder losses(record.SubnetCount().value_or(0));
  const Status read = record.ForEachSubnet({false, false, true}, [&](const SubnetRow& subnet) {
    losses.Add(NumberOf(subnet), subnet.loss_bits);
    AddActivity(subnet, data, span);
    last = subnet.seq;
    return true;
  });
  if (!read) data.problems.push_back(read.error().message);
  data.losses = losses.Finish();
  data.run_ns = span.end_ns > span.begin_ns ? span.end_ns - span.begin_ns : 0;
  return last;
}

void ReadReference(const RecordReader& reference, ReportData& data) {
  if (auto run = reference.Run()) data.reference_run = *std::move(run);
  LossCurveBuilder losses(reference.SubnetCount().value_or(0));
  const Status read = reference.ForEachSubnet({false, false, false}, [&](const SubnetRow& subnet) {
    losses.Add(NumberOf(subnet), subnet.loss_bits);
    return true;
  });
  if (!read) data.problems.push_back("the reference: " + read.error().message);
  data.reference_losses = losses.Finish();
}

/// The subnet that the report is about, if it is about one.
std::optional<std::int64_t> Focus(const Verdict& verdict) {
  if (verdict.first_difference && verdict.first_difference->seq) {
    return verdict.first_difference->seq;
  }
  return verdict.first_damaged_subnet;
}

}  // namespace

ReportData ReadReportData(const Verdict& verdict, const RecordReader& record,
                          const RecordReader* reference) {
  ReportData data;
  data.busy.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(verdict.run.stages, 0, 1024)));
  Take(record.Environment(), data.environment, data);
  Take(record.Layers(), data.layers, data);
  const std::optional<std::int64_t> last = ReadWholeRun(record, data);
  if (reference != nullptr) ReadReference(*reference, data);
  // A step run has no tasks, and each of its steps follows the one before.
  const bool is_steps = verdict.run.kind == RunKind::kSteps;
  const std::optional<std::int64_t> focus = is_steps ? std::nullopt : Focus(verdict);
  if (!is_steps) Take(ReadStageTimeline(record, verdict.run, focus), data.timeline, data);
  if (!is_steps && (focus || last)) {
    auto found = ReadNeighbourhood(record, data.layers, verdict, focus ? *focus : *last);
    if (found) {
      data.neighbourhood = *std::move(found);
    } else {
      data.problems.push_back(std::move(found).error().message);
    }
  }
  // One damaged row can be met by several readers.
  std::sort(data.problems.begin(), data.problems.end());
  data.problems.erase(std::unique(data.problems.begin(), data.problems.end()), data.problems.end());
  return data;
}

std::vector<std::string> PositionNames(const std::vector<LayerRow>& layers) {
  std::vector<std::string> names;
  for (const LayerRow& layer : layers) {
    const auto position = static_cast<std::size_t>(std::clamp(layer.position, 0, 100000));
    if (names.size() <= position) names.resize(position + 1);
    names[position] = layer.name.substr(0, layer.name.rfind('.'));
  }
  return names;
}

}  // namespace verbatim
