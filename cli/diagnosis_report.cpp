#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/diagnosis.h"
#include "cli/json_text.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string Line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<16} {}\n", label, value);
}

std::string FactOf(const EngineDescription& engine, std::string_view key) {
  for (const EnvironmentRow& row : engine.environment) {
    if (row.key == key) return row.value;
  }
  return "unknown";
}

std::string MachineText(const Diagnosis& here) {
  const Processor& processor = here.processor;
  std::string text = "Machine\n";
  text +=
      Line("processor", fmt::format("{} ({}, family/model {}, stepping {})", processor.model,
                                    processor.vendor, processor.family_model, processor.stepping));
  text += Line("instruction sets", fmt::format("{}", fmt::join(processor.instruction_sets, " ")));
  text += Line("cores", FormatCount(here.cores));
  text += Line("memory", fmt::format("{:.1f} GiB", static_cast<double>(here.memory_bytes) /
                                                       (1024.0 * 1024.0 * 1024.0)));
  return text;
}

std::string EngineText(const Diagnosis& here) {
  std::string text = "Engine\n";
  text += Line("program", here.engine.empty() ? "none" : here.engine.string());
  if (here.engine_description) {
    const EngineDescription& engine = *here.engine_description;
    text += Line("LibTorch", fmt::format("{}, kernels for {}", FactOf(engine, "libtorch.version"),
                                         FactOf(engine, "libtorch.cpu_capability")));
    text += Line("MKL", FactOf(engine, "libtorch.mkl"));
    text += Line("oneDNN", FactOf(engine, "libtorch.onednn"));
    text += Line("devices", fmt::format("{}", fmt::join(engine.devices, ", ")));
    text += Line("CUDA", engine.cuda);
  } else {
    text += Line("problem", here.engine_problem->message);
  }
  return text;
}

std::string ProfilesText(const Diagnosis& here) {
  std::string text = "Numeric profiles\n";
  for (const ProfileDiagnosis& profile : here.profiles) {
    text += Line(ToString(profile.numerics), profile.missing.empty()
                                                 ? "can be computed here"
                                                 : fmt::format("cannot: the processor lacks {}",
                                                               fmt::join(profile.missing, " ")));
  }
  return text;
}

/// Later lines are indented like the first.
std::string Indented(std::string_view text, std::string_view indent) {
  std::string indented(indent);
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += indent;
  }
  return indented + "\n";
}

std::string EnvironmentText(const RecordDiagnosis& record) {
  if (!record.has_environment) return "not known: the engine cannot be asked";
  const auto numeric =
      std::count_if(record.environment_differences.begin(), record.environment_differences.end(),
                    [](const auto& difference) { return difference.numeric; });
  if (numeric == 0) return "no difference that may change bits";
  return FormatCount(numeric, "fact differs that may change bits",
                     "facts differ that may change bits");
}

std::string RecordText(const RecordDiagnosis& record) {
  std::string text = fmt::format("Record {}: {}\n", record.record, record.name);
  text += Line("profile", ToString(record.numerics));
  text += Line("made on", fmt::format("{}, {} per stage, by verbatim {}", record.device,
                                      FormatCount(record.threads_per_stage, "thread", "threads"),
                                      record.made_by));
  text += Line("data set", fmt::format("{}: {}", record.data_folder,
                                       record.has_data ? "as recorded" : "not usable"));
  text += Line("environment", EnvironmentText(record));
  text += Line("integrity",
               fmt::format("not looked at; verbatim verify {} does", ShellPath(record.record)));
  text += Line("re-execution", record.obstacles.empty() ? "possible here" : "not possible here:");
  for (const Obstacle& obstacle : record.obstacles) {
    text += Indented(obstacle.problem, "    ");
    if (!obstacle.remedy.empty()) text += Indented(obstacle.remedy, "      ");
  }
  return text;
}

std::int64_t Executable(const Diagnosis& diagnosis) {
  return std::count_if(diagnosis.records.begin(), diagnosis.records.end(),
                       [](const RecordDiagnosis& record) { return record.obstacles.empty(); });
}

Json DifferencesJson(const std::vector<EnvironmentDifference>& differences) {
  Json list = Json::array();
  for (const EnvironmentDifference& difference : differences) {
    list.push_back({{"key", difference.key},
                    {"recorded", difference.recorded},
                    {"here", difference.here},
                    {"numeric", difference.numeric}});
  }
  return list;
}

Json RecordJson(const RecordDiagnosis& record) {
  Json json;
  json["record"] = record.record;
  json["name"] = record.name;
  json["numerics"] = ToString(record.numerics);
  json["device"] = record.device;
  json["threads_per_stage"] = record.threads_per_stage;
  json["tool_version"] = record.made_by;
  json["data_folder"] = record.data_folder;
  json["has_data"] = record.has_data;
  json["has_environment"] = record.has_environment;
  json["integrity"] = "not looked at";
  json["environment_differences"] = DifferencesJson(record.environment_differences);
  json["can_reexecute"] = record.obstacles.empty();
  json["obstacles"] = Json::array();
  for (const Obstacle& obstacle : record.obstacles) {
    json["obstacles"].push_back({{"problem", obstacle.problem}, {"remedy", obstacle.remedy}});
  }
  return json;
}

Json EngineJson(const Diagnosis& here) {
  Json json;
  json["program"] = here.engine.empty() ? Json(nullptr) : Json(here.engine.string());
  json["problem"] = here.engine_problem ? Json(here.engine_problem->message) : Json(nullptr);
  json["devices"] = Json::array();
  json["cuda"] = nullptr;
  json["environment"] = Json::object();
  if (!here.engine_description) return json;
  json["devices"] = here.engine_description->devices;
  json["cuda"] = here.engine_description->cuda;
  for (const EnvironmentRow& row : here.engine_description->environment) {
    json["environment"][row.key] = row.value;
  }
  return json;
}

Json MachineJson(const Diagnosis& here) {
  Json json;
  json["vendor"] = here.processor.vendor;
  json["model"] = here.processor.model;
  json["family_model"] = here.processor.family_model;
  json["stepping"] = here.processor.stepping;
  json["instruction_sets"] = here.processor.instruction_sets;
  json["cores"] = here.cores;
  json["memory_bytes"] = here.memory_bytes;
  return json;
}

}  // namespace

std::string RenderDiagnosisText(const Diagnosis& diagnosis) {
  std::string text =
      fmt::format("verbatim {}\n\n{}\n{}\n{}", diagnosis.tool_version, MachineText(diagnosis),
                  EngineText(diagnosis), ProfilesText(diagnosis));
  for (const RecordDiagnosis& record : diagnosis.records) text += "\n" + RecordText(record);
  const std::int64_t given = std::ssize(diagnosis.records) + std::ssize(diagnosis.unreadable);
  if (given == 0) return text;
  return text + fmt::format("\n{} of {} can be re-executed here\n", Executable(diagnosis),
                            FormatCount(given, "record", "records"));
}

std::string RenderDiagnosisJson(const Diagnosis& diagnosis) {
  Json json;
  json["format"] = "verbatim-doctor";
  json["version"] = 1;
  json["tool_version"] = diagnosis.tool_version;
  json["machine"] = MachineJson(diagnosis);
  json["engine"] = EngineJson(diagnosis);
  json["profiles"] = Json::array();
  for (const ProfileDiagnosis& profile : diagnosis.profiles) {
    json["profiles"].push_back({{"numerics", ToString(profile.numerics)},
                                {"available", profile.missing.empty()},
                                {"missing", profile.missing}});
  }
  json["records"] = Json::array();
  for (const RecordDiagnosis& record : diagnosis.records) {
    json["records"].push_back(RecordJson(record));
  }
  json["unreadable"] = Json::array();
  for (const Error& error : diagnosis.unreadable) json["unreadable"].push_back(error.message);
  json["exit_code"] = diagnosis.exit_code();
  return ToJsonText(json);
}

}  // namespace verbatim
