#include "trainer/ranks/job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/evidence_json.h"
#include "supernet/object_reader.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

constexpr const char* kFormat = "verbatim-rank-job";
constexpr std::int64_t kVersion = 1;
constexpr const char* kSource = "the job of rank 0";

/// As [first, count] each: a whole stream is one pair.
nlohmann::ordered_json RunsOf(const std::vector<std::int64_t>& sequence) {
  auto runs = nlohmann::ordered_json::array();
  std::int64_t next = -1;
  for (const std::int64_t seq : sequence) {
    if (runs.empty() || seq != next) runs.push_back({seq, 0});
    runs.back()[1] = runs.back()[1].get<std::int64_t>() + 1;
    next = seq + 1;
  }
  return runs;
}

/// Appends one [first, count], which must begin after all before it.
void AppendRun(const JsonNode& run, std::vector<std::int64_t>& sequence, ReadErrors& errors) {
  if (!ExpectKind(run, JsonKind::kArray, "sequence", &errors)) return;
  if (run.children.size() != 2) {
    errors.Report(run.position, "sequence", "expected a first subnet and a count");
    return;
  }
  const std::int64_t least = sequence.empty() ? 0 : sequence.back() + 1;
  std::int64_t first = 0;
  std::int64_t count = 0;
  ReadInteger(run.children[0], "sequence", {least, kMaxSubnets - 1}, &first, &errors);
  ReadInteger(run.children[1], "sequence", {1, kMaxSubnets - first}, &count, &errors);
  if (errors.first()) return;
  for (std::int64_t i = 0; i < count; ++i) sequence.push_back(first + i);
}

std::optional<std::vector<std::int64_t>> ReadSequence(const ObjectReader& object,
                                                      ReadErrors& errors) {
  const JsonNode* runs = object.Find("sequence");
  if (runs == nullptr) return std::nullopt;
  std::vector<std::int64_t> sequence;
  if (!ExpectKind(*runs, JsonKind::kArray, "sequence", &errors)) return std::nullopt;
  for (const JsonNode& run : runs->children) {
    AppendRun(run, sequence, errors);
    if (errors.first()) return std::nullopt;
  }
  return sequence;
}

void ReadLayout(const ObjectReader& object, RankJob& job) {
  object.String("device", &job.device, Presence::kRequired);
  object.Integer("threads_per_stage", {1, kMaxThreadsPerStage}, &job.threads_per_stage,
                 Presence::kRequired);
  object.Integer("stages", {1, kMaxLayers}, &job.stages, Presence::kRequired);
  object.Integer("in_flight", {1, kMaxSubnets}, &job.in_flight, Presence::kRequired);
  object.String("partition", &job.partition, Presence::kRequired);
  object.String("costs", &job.costs_json);
  object.String("recompute", &job.recompute, Presence::kRequired);
  object.String("policy", &job.policy, Presence::kRequired);
  if (object.Find("device_memory") == nullptr) return;
  object.Integer("device_memory", {1, INT64_MAX}, &job.device_memory.emplace(0),
                 Presence::kRequired);
}

void ReadRun(const ObjectReader& object, RankJob& job) {
  object.String("spec", &job.spec_json, Presence::kRequired);
  object.String("spec_folder", &job.spec_folder);
  object.String("dataset", &job.dataset_digest);
  object.String("record_level", &job.record_level, Presence::kRequired);
  object.Boolean("is_observed", &job.is_observed);
  object.Boolean("stop_on_nan", &job.stop_on_nan);
  object.Integer("first", {0, kMaxSubnets}, &job.first, Presence::kRequired);
  object.Integer("begin_ns", {0, INT64_MAX}, &job.begin_ns, Presence::kRequired);
  object.Boolean("has_checkpoints", &job.has_checkpoints);
  object.Integer("checkpoint_every", {0, kMaxSubnets}, &job.checkpoint_every, Presence::kRequired);
  object.Boolean("sends_layers", &job.sends_layers);
}

}  // namespace

std::string ToJson(const RankJob& job) {
  nlohmann::ordered_json json{{"format", kFormat},
                              {"version", kVersion},
                              {"spec", job.spec_json},
                              {"device", job.device},
                              {"threads_per_stage", job.threads_per_stage},
                              {"stages", job.stages},
                              {"in_flight", job.in_flight},
                              {"partition", job.partition},
                              {"recompute", job.recompute},
                              {"policy", job.policy},
                              {"record_level", job.record_level},
                              {"is_observed", job.is_observed},
                              {"stop_on_nan", job.stop_on_nan},
                              {"first", job.first},
                              {"begin_ns", job.begin_ns},
                              {"has_checkpoints", job.has_checkpoints},
                              {"checkpoint_every", job.checkpoint_every},
                              {"sends_layers", job.sends_layers}};
  if (!job.spec_folder.empty()) json["spec_folder"] = job.spec_folder;
  if (!job.dataset_digest.empty()) json["dataset"] = job.dataset_digest;
  if (!job.costs_json.empty()) json["costs"] = job.costs_json;
  if (job.device_memory) json["device_memory"] = *job.device_memory;
  if (job.sequence) json["sequence"] = RunsOf(*job.sequence);
  return json.dump();
}

Result<RankJob> ParseRankJob(const std::string& json) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseJson(json, kSource));
  RETURN_IF_ERROR(CheckFormat(node, kFormat, kVersion, "job", kSource));
  ReadErrors errors(kSource);
  const ObjectReader object(node, "",
                            {"format",
                             "version",
                             "spec",
                             "spec_folder",
                             "dataset",
                             "device",
                             "threads_per_stage",
                             "stages",
                             "in_flight",
                             "partition",
                             "costs",
                             "recompute",
                             "device_memory",
                             "policy",
                             "record_level",
                             "is_observed",
                             "stop_on_nan",
                             "sequence",
                             "first",
                             "begin_ns",
                             "has_checkpoints",
                             "checkpoint_every",
                             "sends_layers"},
                            &errors);
  RankJob job;
  ReadRun(object, job);
  ReadLayout(object, job);
  job.sequence = ReadSequence(object, errors);
  if (errors.first()) return tl::unexpected(*errors.first());
  return job;
}

}  // namespace verbatim
