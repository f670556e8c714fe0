#include "cli/json_text.h"
#include "cli/simulation_views.h"
#include "cli/version.h"

namespace verbatim {
namespace {

Json StageJson(const StageUse& stage, const SimulationReport& report) {
  Json json;
  json["busy"] = report.BusyShare(stage);
  json["forward"] = stage.forward;
  json["backward"] = stage.backward;
  json["update"] = stage.update;
  json["recompute"] = stage.recompute;
  json["held"] = stage.held_max;
  json["activation_bytes"] = stage.activation_bytes;
  json["whole_activation_bytes"] = stage.whole_activation_bytes;
  json["weight_bytes"] = stage.weight_bytes;
  return json;
}

Json DeviceMemoryJson(const SimulationRun& run) {
  if (!run.report.device_memory) return nullptr;
  const DeviceMemoryUse& use = *run.report.device_memory;
  Json json;
  json["bytes"] = run.setting.device_memory;
  json["cache"] = run.setting.cache;
  json["hit_rate"] = use.cache.HitRate();
  json["hits"] = use.cache.hits;
  json["misses"] = use.cache.misses;
  json["loads"] = use.cache.loads;
  json["loaded_bytes"] = use.cache.bytes_loaded;
  json["written_bytes"] = use.cache.bytes_written;
  json["stall"] = use.MeanStall();
  json["stall_for_room"] = use.MeanStallForRoom();
  json["by_stage"] = Json::array();
  for (std::size_t i = 0; i < use.stall.size(); ++i) {
    json["by_stage"].push_back(
        {{"stall", use.stall[i]}, {"stall_for_room", use.stall_for_room[i]}});
  }
  return json;
}

Json RunJson(const SimulationRun& run) {
  const SimulationReport& report = run.report;
  Json json;
  json["policy"] = run.setting.policy;
  json["is_causal"] = run.is_causal;
  json["stages"] = run.setting.stages;
  json["partition"] = run.setting.partition;
  json["recompute"] = run.setting.recompute;
  json["microbatches"] = run.setting.microbatches;
  json["in_flight"] = run.setting.in_flight;
  json["makespan"] = report.makespan;
  json["work"] = report.work;
  json["recomputed_work"] = report.recompute;
  json["speedup"] = report.speedup();
  json["critical_path"] = report.critical_path;
  json["bound"] = report.bound();
  json["bubble"] = report.bubble();
  json["accesses"] = report.accesses;
  json["violations"] = report.violations;
  json["moved_bytes"]["activations"] = report.moved.activations;
  json["moved_bytes"]["gradients"] = report.moved.gradients;
  json["moved_bytes"]["versions"] = report.moved.versions;
  json["device_memory_least"] = report.device_memory_least;
  json["part_bytes"] = report.part_bytes;
  json["device_memory"] = DeviceMemoryJson(run);
  json["by_stage"] = Json::array();
  for (const StageUse& stage : report.stages) {
    json["by_stage"].push_back(StageJson(stage, report));
  }
  return json;
}

}  // namespace

std::string StudyJson(const SimulationStudy& study) {
  Json json;
  json["format"] = "verbatim-simulation";
  json["version"] = 1;
  json["tool_version"] = ToolVersion();
  json["spec"] = study.spec;
  json["name"] = study.name;
  json["sampler"] = study.sampler;
  json["blocks"] = study.blocks;
  json["layers"] = study.layers;
  json["subnets"] = study.subnets;
  json["costs"] = study.costs_text;
  json["unit"] = UnitOf(study.costs);
  json["seconds_per_unit"] = study.seconds_per_unit;
  json["runs"] = Json::array();
  for (const SimulationRun& run : study.runs) json["runs"].push_back(RunJson(run));
  return ToJsonText(json);
}

}  // namespace verbatim
