#include "replay/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/keyed_random.h"
#include "schedule/causal_cone.h"
#include "supernet/spec_limits.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

std::optional<std::int64_t> ParseNumber(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

Result<CausalHistory> ReadHistory(const RecordReader& reader, std::size_t layers,
                                  std::int64_t recorded) {
  CausalHistory history(static_cast<std::int32_t>(layers));
  std::vector<std::int32_t> uses;
  RETURN_IF_ERROR(reader.ForEachSubnet(ReadOptions{}, [&](const SubnetRow& subnet) {
    if (history.subnets() == recorded) return false;
    uses.clear();
    for (const AccessRow& access : subnet.accesses) uses.push_back(access.layer);
    history.Add(uses);
    return true;
  }));
  return history;
}

Status CheckSeq(std::int64_t seq, std::int64_t recorded, const char* option) {
  if (seq < recorded) return {};
  return UsageError(fmt::format("{} {}: the record has no such subnet", option, seq),
                    recorded == 0 ? "It holds no subnet that can be executed again."
                                  : fmt::format("Name one from 0 to {}.", recorded - 1));
}

Result<const LayerRow*> FindLayer(const std::vector<LayerRow>& layers, const std::string& text) {
  const auto id = ParseNumber(text);
  for (const LayerRow& layer : layers) {
    if (layer.name == text || id == layer.layer) return &layer;
  }
  return UsageError(fmt::format("--layer {}: the record has no such layer", text),
                    "sqlite3 RUN.db 'SELECT layer, name FROM layers' lists them.");
}

Result<std::int64_t> WriterOf(const CausalHistory& history, const std::vector<LayerRow>& layers,
                              const ReplaySelection::Version& version) {
  ASSIGN_OR_RETURN(const LayerRow* layer, FindLayer(layers, version.layer));
  const std::int64_t writer = history.LastWriter(layer->layer, version.at);
  if (writer >= 0) return writer;
  return UsageError(
      fmt::format("--layer {} --at {}: no subnet up to {} wrote it", layer->name, version.at,
                  version.at),
      "Its initial weights are compared by every replay; verbatim show RUN.db --layer lists its "
      "versions.");
}

std::vector<std::int64_t> Draw(const ReplaySelection::Draw& draw, std::int64_t recorded) {
  std::vector<std::uint32_t> pool(static_cast<std::size_t>(recorded));
  std::iota(pool.begin(), pool.end(), 0u);
  const auto drawn = DrawSamples(pool, std::min(draw.count, recorded),
                                 RandomKey{draw.seed, RandomPurpose::kReexecutionDraw});
  std::vector<std::int64_t> seqs(drawn.begin(), drawn.end());
  std::sort(seqs.begin(), seqs.end());
  return seqs;
}

std::vector<std::int64_t> Prefix(std::int64_t count) {
  std::vector<std::int64_t> seqs(static_cast<std::size_t>(count));
  std::iota(seqs.begin(), seqs.end(), std::int64_t{0});
  return seqs;
}

ReplayPlan PlanPrefix(std::int64_t count, std::int64_t recorded) {
  ReplayPlan plan{Prefix(count), Prefix(count), recorded, ""};
  plan.description = count == recorded ? fmt::format("all {} subnets", recorded)
                                       : fmt::format("the first {} of {} subnets", count, recorded);
  return plan;
}

}  // namespace

Result<ReplayPlan> PlanReplay(const RecordReader& reader, std::int64_t recorded,
                              const ReplaySelection& selection) {
  if (selection.until) {
    RETURN_IF_ERROR(CheckSeq(*selection.until, recorded, "--until"));
    return PlanPrefix(*selection.until + 1, recorded);
  }
  if (selection.subnet) RETURN_IF_ERROR(CheckSeq(*selection.subnet, recorded, "--subnet"));
  if (selection.version) RETURN_IF_ERROR(CheckSeq(selection.version->at, recorded, "--at"));
  if (!selection.subnet && !selection.version && !selection.draw) {
    return PlanPrefix(recorded, recorded);
  }
  ASSIGN_OR_RETURN(const std::vector<LayerRow> layers, reader.Layers());
  ASSIGN_OR_RETURN(const CausalHistory history, ReadHistory(reader, layers.size(), recorded));
  ReplayPlan plan;
  plan.recorded = recorded;
  std::string of_what;
  if (selection.draw) {
    plan.selected = Draw(*selection.draw, recorded);
    of_what = fmt::format("{} drawn by seed {}, with their causal cones", plan.selected.size(),
                          selection.draw->seed);
  } else if (selection.subnet) {
    plan.selected = {*selection.subnet};
    of_what = fmt::format("the causal cone of subnet {}", *selection.subnet);
  } else {
    ASSIGN_OR_RETURN(const std::int64_t writer, WriterOf(history, layers, *selection.version));
    plan.selected = {writer};
    of_what = fmt::format("the causal cone of subnet {}, which wrote {} last up to {}", writer,
                          selection.version->layer, selection.version->at);
  }
  plan.subnets = history.Cone(plan.selected);
  plan.description = fmt::format("{} of {} subnets ({})", plan.subnets.size(), recorded, of_what);
  return plan;
}

Result<std::int64_t> RecordedThreads(const std::vector<EnvironmentRow>& environment) {
  for (const EnvironmentRow& row : environment) {
    if (row.key != "threads_per_stage") continue;
    const auto threads = ParseNumber(row.value);
    if (threads && *threads >= 1 && *threads <= kMaxThreadsPerStage) return *threads;
    return BadInput(fmt::format("the recorded threads_per_stage is '{}'", row.value),
                    "The record's environment was changed; it cannot be re-executed.");
  }
  return 1;
}

}  // namespace verbatim
