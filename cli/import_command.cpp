#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/loss_log.h"
#include "cli/output.h"
#include "cli/version.h"
#include "recorder/step_recorder.h"
#include "supernet/text_file.h"
#include "verify/text.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  fs::path log;
  std::string from;
  fs::path output;
  std::optional<std::string> name;
  std::optional<std::uint64_t> seed;
  bool force = false;
};

constexpr const char* kFooter =
    "Makes a record of losses that another program logged, so that they can be compared, kept "
    "under\n"
    "heads and signed like any other record: a step run of level losses.\n"
    "\n"
    "jsonl: an object per line with a step and what is known of it:\n"
    "  {\"step\": 120, \"loss\": 2.302585, \"settings\": {\"lr\": 0.1}}\n"
    "  Also loss_bits (\"0x40135d8e\"), batch, random_state and parts (digests of 32 hexadecimal\n"
    "  digits). A loss becomes the nearest float32.\n"
    "naspipe-log: what the last stage of NASPipe prints, with a subnet's Id and Output.\n"
    "\n"
    "Exit code 0: done; 3: the log cannot be read, with the line; 4: the record cannot be "
    "written.\n"
    "\n"
    "Examples:\n"
    "  verbatim import --from jsonl losses.jsonl -o monday.db\n"
    "  verbatim import --from naspipe-log reproducible1 -o one.db\n"
    "  verbatim diff one.db two.db";

Result<std::vector<LoggedStep>> ReadLog(const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadTextFile(options.log, "the log", "Name a file of losses."));
  const std::string source = options.log.string();
  return options.from == "jsonl" ? ReadJsonLines(text, source) : ReadNaspipeLog(text, source);
}

StepRun DescribeRun(const ImportOptions& options, const Invocation& invocation) {
  StepRun run;
  run.spec.name = options.name.value_or(options.log.stem().string());
  run.spec.seed = options.seed;
  run.spec.optimizer_state = false;
  run.record_level = "losses";
  run.tool_version = ToolVersion();
  std::error_code error;
  run.folder = fs::current_path(error).string();
  run.command_line = invocation.command_line;
  run.device = "unknown";
  return run;
}

Result<int> Import(const ImportOptions& options, const Invocation& invocation) {
  ASSIGN_OR_RETURN(std::vector<LoggedStep> steps, ReadLog(options));
  const std::vector<EnvironmentRow> environment{
      {"info.imported_from", fmt::format("{}: {}", options.from, options.log.string())}};
  ASSIGN_OR_RETURN(const auto recorder,
                   StepRecorder::Open(options.output, DescribeRun(options, invocation), {},
                                      environment, {.overwrite = options.force}));
  const std::int64_t first = steps.front().facts.step;
  const std::int64_t last = steps.back().facts.step;
  const std::string count = FormatCount(std::ssize(steps), "step", "steps");
  for (LoggedStep& step : steps) {
    StepRow row;
    row.facts = std::move(step.facts);
    row.loss_bits = step.loss_bits;
    row.batch = step.batch;
    RETURN_IF_ERROR(recorder->Record(std::move(row)));
  }
  RETURN_IF_ERROR(recorder->Close(RunStatus::kComplete, ""));
  RETURN_IF_ERROR(WriteToStdout(
      fmt::format("{}: {}, from {} to {}\n", options.output.string(), count, first, last)));
  return 0;
}

}  // namespace

void AddImportCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      app.add_subcommand("import", "Makes a record of losses that another program logged");
  command->footer(kFooter);
  command->add_option("log", options->log, "The log. Example: losses.jsonl")
      ->required()
      ->type_name("FILE");
  command->add_option("--from", options->from, "What the log is. Example: --from jsonl")
      ->required()
      ->type_name("jsonl|naspipe-log")
      ->check(CLI::IsMember({"jsonl", "naspipe-log"}));
  command->add_option("-o,--output", options->output, "The record to write. Example: -o run.db")
      ->required()
      ->type_name("RUN.db")
      ->check(NamedPath());
  command
      ->add_option("--name", options->name,
                   "The run's name; the log's, without its ending, if not given. Example: --name "
                   "baseline")
      ->type_name("NAME");
  command
      ->add_option("--seed", options->seed,
                   "The seed that the run is said to have had. Example: --seed 7")
      ->type_name("SEED")
      ->check(SeedNumber());
  command->add_flag("--force", options->force,
                    "Overwrites an existing record. Example: -o run.db --force");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Import(*options, invocation); };
  });
}

}  // namespace verbatim
