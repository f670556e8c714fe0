#include "cli/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "cli/engine_process.h"
#include "cli/forward.h"
#include "cli/step_runs.h"
#include "cli/version.h"
#include "replay/plan.h"
#include "store/reader.h"
#include "supernet/numeric_profile.h"
#include "supernet/stream.h"
#include "trainer/data/data_set.h"
#include "verify/environment_comparison.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

std::int64_t UsableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : sysconf(_SC_NPROCESSORS_ONLN);
}

/// Asks the engine each question once: an answer may take seconds.
class EngineAnswers {
 public:
  explicit EngineAnswers(Engine* engine)
      : engine_(engine),
        program_(engine != nullptr ? Result<fs::path>(ExecutablePath())
                                   : FindEngine(ExecutableFolder())) {}

  const Result<fs::path>& program() const { return program_; }

  const Result<EngineDescription>& Describe(Numerics numerics, const std::string& device,
                                            std::int64_t threads) {
    const auto key = std::make_tuple(numerics, device, threads);
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
    return answers_.emplace(key, Ask(numerics, device, threads)).first->second;
  }

 private:
  Result<EngineDescription> Ask(Numerics numerics, const std::string& device,
                                std::int64_t threads) {
    if (!program_) return tl::unexpected(program_.error());
    if (engine_ != nullptr && IsNumericProfileSet(numerics)) {
      return engine_->Describe(device, threads);
    }
    return AskEngine(*program_, numerics, device, threads);
  }

  Engine* engine_;
  Result<fs::path> program_;
  std::map<std::tuple<Numerics, std::string, std::int64_t>, Result<EngineDescription>> answers_;
};

/// What of an environment can be told without the engine.
std::vector<EnvironmentRow> ProcessorFacts(const Processor& processor) {
  return {{"cpu.family_model", processor.family_model},
          {"cpu.instruction_sets", fmt::format("{}", fmt::join(processor.instruction_sets, " "))},
          {"cpu.model", processor.model},
          {"cpu.stepping", processor.stepping},
          {"cpu.vendor", processor.vendor}};
}

void AddObstacle(RecordDiagnosis& record, const Error& error) {
  record.obstacles.push_back({error.message, error.hint});
}

void CheckProfile(const Processor& processor, RecordDiagnosis& record) {
  const Status fits = CheckProcessor(record.numerics, processor);
  if (!fits) record.obstacles.push_back({fits.error().message, "Take one that has them."});
}

std::string DeviceKind(const std::string& device) {
  return device.substr(0, device.find_first_of(": "));
}

void CheckDevice(const Diagnosis& here, RecordDiagnosis& record) {
  if (!here.engine_description) return AddObstacle(record, *here.engine_problem);
  const std::vector<std::string>& devices = here.engine_description->devices;
  if (std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
        return DeviceKind(device) == DeviceKind(record.device);
      })) {
    return;
  }
  record.obstacles.push_back(
      {fmt::format("the run was made on {}; the engine can use here: {}", record.device,
                   fmt::join(devices, ", ")),
       "Re-execute it on a machine, and with a build, that has such a device."});
}

/// Compares with what the engine says of a re-execution. Where it cannot be asked, the processor
/// alone is compared, and nothing follows from that.
void CheckEnvironment(const Diagnosis& here, const std::vector<EnvironmentRow>& recorded,
                      EngineAnswers& answers, RecordDiagnosis& record) {
  if (record.obstacles.empty()) {
    const auto& description =
        answers.Describe(record.numerics, DeviceKind(record.device), record.threads_per_stage);
    if (!description) AddObstacle(record, description.error());
    record.has_environment = description.has_value();
    if (description) {
      record.environment_differences =
          CompareEnvironments(recorded, description->environment, record.numerics);
      const auto refusal = EnvironmentRefusal(record.environment_differences);
      if (refusal) AddObstacle(record, *refusal);
      return;
    }
  }
  record.environment_differences =
      CompareEnvironments(recorded, ProcessorFacts(here.processor), record.numerics);
  std::erase_if(record.environment_differences,
                [](const EnvironmentDifference& difference) { return difference.here.empty(); });
}

/// The data set must be there, be the recorded one, and give the sampler what it needs.
Status CheckData(const RunInfo& run, const Spec& spec, const fs::path& folder) {
  ASSIGN_OR_RETURN(const DataSet data, LoadDataSet(spec, folder));
  if (data.digest() != run.dataset_digest) {
    return BadInput(fmt::format("the data set in {} is not the recorded one", folder.string()),
                    "Name the folder of the right one with --data.");
  }
  ASSIGN_OR_RETURN(const SearchSpace space, SearchSpace::Build(spec, data.shape(), data.classes()));
  RETURN_IF_ERROR(MakeSampler(spec, space, run.spec_folder));
  return {};
}

Result<RecordDiagnosis> DiagnoseRecord(const fs::path& path, const Diagnosis& here,
                                       const std::optional<fs::path>& data_folder,
                                       EngineAnswers& answers) {
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(path));
  RETURN_IF_ERROR(RefuseStepRun(*reader, path.string()));
  ASSIGN_OR_RETURN(const RunInfo run, reader->Run());
  ASSIGN_OR_RETURN(const auto recorded, reader->Environment());
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run.spec_json, path.string() + ": recorded spec"));
  RecordDiagnosis record;
  record.record = path.string();
  record.name = spec.name;
  record.made_by = run.tool_version;
  record.device = run.device;
  record.numerics = spec.numerics;
  ASSIGN_OR_RETURN(record.threads_per_stage, RecordedThreads(recorded));
  const fs::path folder = data_folder.value_or(DataFolderOf(spec, run.spec_folder));
  record.data_folder = folder.string();
  CheckProfile(here.processor, record);
  CheckDevice(here, record);
  CheckEnvironment(here, recorded, answers, record);
  const Status data = CheckData(run, spec, folder);
  record.has_data = data.has_value();
  if (!data) AddObstacle(record, data.error());
  return record;
}

Diagnosis DiagnoseMachine(EngineAnswers& answers) {
  Diagnosis here;
  here.tool_version = ToolVersion();
  here.processor = DescribeProcessor();
  here.cores = UsableCores();
  here.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  here.engine = answers.program().value_or(fs::path());
  const auto& description = answers.Describe(Numerics::kNative, "cpu", 1);
  if (description) {
    here.engine_description = *description;
  } else {
    here.engine_problem = description.error();
  }
  for (const Numerics numerics : {Numerics::kNative, Numerics::kX8664V3, Numerics::kX8664}) {
    here.profiles.push_back(
        {numerics, MissingInstructionSets(numerics, here.processor.instruction_sets)});
  }
  return here;
}

}  // namespace

int Diagnosis::exit_code() const {
  if (!unreadable.empty()) return ExitCode(unreadable.front().kind);
  return std::any_of(records.begin(), records.end(),
                     [](const RecordDiagnosis& record) { return !record.obstacles.empty(); })
             ? 1
             : 0;
}

Diagnosis Diagnose(const std::vector<fs::path>& records, const std::optional<fs::path>& data_folder,
                   Engine* engine) {
  EngineAnswers answers(engine);
  Diagnosis diagnosis = DiagnoseMachine(answers);
  for (const fs::path& path : records) {
    auto record = DiagnoseRecord(path, diagnosis, data_folder, answers);
    if (record) {
      diagnosis.records.push_back(*std::move(record));
    } else {
      diagnosis.unreadable.push_back(std::move(record).error());
    }
  }
  return diagnosis;
}

}  // namespace verbatim
