#include "verify/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "verify/text.h"

namespace verbatim {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
/// A damaged record may claim any number.
constexpr std::int64_t kStagesNamed = 4096;
/// Versions of a layer whose times are kept: enough for delays that let a pipeline run.
constexpr std::size_t kVersionsKept = 64;

double Microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e3;
}

/// A tid of 0 would be taken for the process itself. 64 bits, for a damaged record may claim the
/// largest stage.
std::int64_t Thread(std::int32_t stage) {
  return std::int64_t{stage} + 1;
}

Json Event(const char* type, std::string name, std::int32_t stage) {
  Json event;
  event["ph"] = type;
  event["name"] = std::move(name);
  event["pid"] = kProcess;
  event["tid"] = Thread(stage);
  return event;
}

}  // namespace

Status TraceWriter::Put(const Json& event) {
  const std::string text = event.dump(-1, ' ', false, Json::error_handler_t::replace);
  RETURN_IF_ERROR(write_(is_first_ ? "\n" : ",\n"));
  is_first_ = false;
  return write_(text);
}

Status TraceWriter::PutName(const char* what, std::int32_t stage, const std::string& name) {
  Json event = Event("M", what, stage);
  event["args"]["name"] = name;
  return Put(event);
}

Status TraceWriter::Begin(const TraceHead& head) {
  Json about;
  for (const auto& [key, value] : head.about) about[key] = value;
  RETURN_IF_ERROR(write_("{\"displayTimeUnit\":\"ms\",\"otherData\":" +
                         about.dump(-1, ' ', false, Json::error_handler_t::replace) +
                         ",\"traceEvents\":["));
  RETURN_IF_ERROR(PutName("process_name", -1, head.process));
  const auto stages = static_cast<std::int32_t>(std::min<std::int64_t>(head.stages, kStagesNamed));
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    RETURN_IF_ERROR(PutName("thread_name", stage, fmt::format("stage {}", stage)));
    Json order = Event("M", "thread_sort_index", stage);
    order["args"]["sort_index"] = stage;
    RETURN_IF_ERROR(Put(order));
  }
  return {};
}

Status TraceWriter::PutTask(const SubnetRow& subnet, const ActivityRow& task, bool has_loss) {
  Json event = Event("X", fmt::format("{} {}", ToString(task.phase), subnet.seq), task.stage);
  event["cat"] = ToString(task.phase);
  event["ts"] = Microseconds(task.begin_ns);
  event["dur"] = Microseconds(task.end_ns - task.begin_ns);
  event["args"]["subnet"] = subnet.seq;
  event["args"]["microbatch"] = task.microbatch;
  if (!has_loss) return Put(event);
  const float loss = LossFromBits(subnet.loss_bits);
  event["args"]["loss"] = std::isfinite(loss) ? Json(loss) : Json(FormatNumber(loss, 9));
  return Put(event);
}

Status TraceWriter::PutFlow(const Version& from, std::int32_t stage, std::int64_t read_ns) {
  Json event = Event("s", "version", from.stage);
  event["cat"] = "causal";
  event["id"] = ++flows_;
  event["ts"] = Microseconds(from.updated_ns);
  RETURN_IF_ERROR(Put(event));
  event["ph"] = "f";
  event["tid"] = Thread(stage);
  event["bp"] = "e";  // binds to the task that begins there, not to the next one
  event["ts"] = Microseconds(read_ns);
  return Put(event);
}

Status TraceWriter::PutFlows(const SubnetRow& subnet, const TimeByStage& first_forward_ns) {
  std::set<std::tuple<std::int64_t, std::int32_t, std::int32_t>> drawn;
  for (const AccessRow& access : subnet.accesses) {
    const auto versions = versions_.find(access.layer);
    const auto read = first_forward_ns.find(access.stage);
    if (versions == versions_.end() || read == first_forward_ns.end()) continue;
    const auto from =
        std::find_if(versions->second.rbegin(), versions->second.rend(),
                     [&](const Version& version) { return version.seq == access.read_seq; });
    if (from == versions->second.rend()) continue;
    if (!drawn.emplace(from->seq, from->stage, access.stage).second) continue;
    RETURN_IF_ERROR(PutFlow(*from, access.stage, read->second));
  }
  return {};
}

void TraceWriter::KeepVersions(const SubnetRow& subnet, const TimeByStage& updated_ns) {
  for (const AccessRow& access : subnet.accesses) {
    const auto updated = updated_ns.find(access.stage);
    if (updated == updated_ns.end()) continue;
    std::deque<Version>& versions = versions_[access.layer];
    if (versions.size() == kVersionsKept) versions.pop_front();
    versions.push_back({subnet.seq, access.stage, updated->second});
  }
}

Status TraceWriter::Add(const SubnetRow& subnet, bool has_loss) {
  TimeByStage first_forward_ns;
  TimeByStage updated_ns;
  for (const ActivityRow& task : subnet.activities) {
    RETURN_IF_ERROR(PutTask(subnet, task, has_loss));
    if (task.phase == Phase::kForward) first_forward_ns.emplace(task.stage, task.begin_ns);
    if (task.phase == Phase::kUpdate) updated_ns[task.stage] = task.begin_ns;
  }
  RETURN_IF_ERROR(PutFlows(subnet, first_forward_ns));
  KeepVersions(subnet, updated_ns);
  return {};
}

Status TraceWriter::End() {
  return write_("\n]}\n");
}

}  // namespace verbatim
