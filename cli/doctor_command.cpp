#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/diagnosis.h"
#include "cli/engine_process.h"
#include "cli/output.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Says what this machine is, what the engine computes with, and which numeric profiles can be\n"
    "computed here. For each record: whether it can be re-executed here, and if not, why, and "
    "what\n"
    "would help. Trains nothing, and does not look whether a record is intact: verbatim verify "
    "does.\n"
    "\n"
    "Exit code 0: all records given can be re-executed here; 1: some cannot; 3: a file is no "
    "record.\n"
    "\n"
    "Examples:\n"
    "  verbatim doctor\n"
    "  verbatim doctor run.db other.db\n"
    "  verbatim doctor run.db --data /data/digits\n"
    "  verbatim doctor run.db --format json";

struct DoctorOptions {
  std::vector<fs::path> records;
  std::optional<fs::path> data;
  std::string format = "text";
  std::string describe_engine;  ///< a device; hidden: see cli/engine_process.h
  std::int64_t threads_per_stage = 1;
};

/// The engine's answer to AskEngine.
Result<int> DescribeEngine(const DoctorOptions& options, Engine* engine) {
  if (engine == nullptr) return Failed("verbatim-engine is the program to ask, not verbatim");
  ASSIGN_OR_RETURN(const EngineDescription description,
                   engine->Describe(options.describe_engine, options.threads_per_stage));
  RETURN_IF_ERROR(WriteToStdout(EngineDescriptionJson(description)));
  return 0;
}

Result<int> Doctor(const DoctorOptions& options, const Invocation& invocation) {
  if (!options.describe_engine.empty()) return DescribeEngine(options, invocation.engine);
  const Diagnosis diagnosis = Diagnose(options.records, options.data, invocation.engine);
  // Who asks of a record alone, and there is none, gets the error alone, as of every command.
  if (!diagnosis.records.empty() || diagnosis.unreadable.empty()) {
    RETURN_IF_ERROR(WriteToStdout(options.format == "json" ? RenderDiagnosisJson(diagnosis)
                                                           : RenderDiagnosisText(diagnosis)));
  }
  for (const Error& error : diagnosis.unreadable) PrintError(error, invocation.no_color);
  return diagnosis.exit_code();
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Says what this machine can reproduce, and which records");
  command->footer(kFooter);
  command->add_option("records", options->records, "Records to look at. Example: run.db")
      ->type_name("RUN.db");
  AddDataOption(*command, options->data);
  AddFormatOption(*command, options->format);
  command->add_option("--describe-engine", options->describe_engine)->group("");
  command->add_option("--threads-per-stage", options->threads_per_stage)->group("");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Doctor(*options, invocation); };
  });
}

}  // namespace verbatim
