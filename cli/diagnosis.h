// What `verbatim doctor` finds out, as plain values: about the machine, the engine, and records
// that are to be re-executed here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/processor.h"
#include "base/status.h"
#include "cli/engine.h"
#include "supernet/spec.h"
#include "verify/verdict.h"

namespace verbatim {

/// Why something cannot be done here, and what would help.
struct Obstacle {
  std::string problem;
  std::string remedy;
};

struct ProfileDiagnosis {
  Numerics numerics = Numerics::kNative;
  std::vector<std::string> missing;  ///< instruction sets; empty: it can be computed here
};

struct RecordDiagnosis {
  std::string record;  ///< path as typed
  std::string name;    ///< the spec's
  std::string made_by;
  std::string device;  ///< as recorded
  Numerics numerics = Numerics::kNative;
  std::int64_t threads_per_stage = 1;
  std::string data_folder;
  bool has_data = false;  ///< the data set there is the recorded one
  /// Whether the engine told the environment of a re-execution. If not, only the processor was
  /// compared.
  bool has_environment = false;
  std::vector<EnvironmentDifference> environment_differences;
  std::vector<Obstacle> obstacles;  ///< empty: it can be re-executed here
};

struct Diagnosis {
  std::string tool_version;
  Processor processor;
  std::int64_t cores = 0;                               ///< that this process may use
  std::int64_t memory_bytes = 0;                        ///< of the machine
  std::filesystem::path engine;                         ///< empty where there is none
  std::optional<EngineDescription> engine_description;  ///< under "native", for a CPU
  std::optional<Error> engine_problem;
  std::vector<ProfileDiagnosis> profiles;
  std::vector<RecordDiagnosis> records;
  std::vector<Error> unreadable;  ///< of the files given that cannot be read as records

  /// That of the first of `unreadable`; else 1 where a record cannot be re-executed here, else 0.
  int exit_code() const;
};

/// Looks at this machine, and at records with the data in `data_folder` or else where their specs
/// say. `engine` is this process's, or null. Starts the engine's program (cli/engine_process.h)
/// once per profile, device and number of threads that this process does not have. Of a record only
/// what a re-execution starts from is read: that it is intact is for `verify` to say.
Diagnosis Diagnose(const std::vector<std::filesystem::path>& records,
                   const std::optional<std::filesystem::path>& data_folder, Engine* engine);

/// For people; ends in a line that says how many of the files given can be re-executed here. The
/// errors of those that cannot be read are not in it.
std::string RenderDiagnosisText(const Diagnosis& diagnosis);
/// One JSON object; docs/cli.md states its fields.
std::string RenderDiagnosisJson(const Diagnosis& diagnosis);

}  // namespace verbatim
