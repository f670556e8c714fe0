#include "cli/command_line.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "cli/forward.h"
#include "cli/output.h"
#include "cli/version.h"
#include "supernet/nearest_name.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr const char* kDescription =
    "Trains weight-sharing supernets over pipeline stages and proves from the record, bit for "
    "bit,\n"
    "that a run equals training the same subnets one after another.";

constexpr const char* kFooter =
    "Exit codes:\n"
    "  0  done, and everything compared was equal\n"
    "  1  a difference or a violation of causality was found\n"
    "  2  wrong usage\n"
    "  3  bad or damaged input: a spec, a record, data\n"
    "  4  the run failed: device, disk, missing trainer\n"
    "\n"
    "Examples:\n"
    "  verbatim check digits.json\n"
    "  verbatim train digits.json -o run.db --stages 4\n"
    "  verbatim verify run.db\n"
    "  verbatim diff monday.db tuesday.db\n"
    "  verbatim verify run.db --reexecute all\n"
    "  verbatim replay run.db --stages 8\n"
    "  verbatim show run.db --subnet 12\n"
    "  verbatim export run.db -o model.safetensors\n"
    "  verbatim profile digits.json -o costs.json\n"
    "  verbatim import --from jsonl losses.jsonl -o run.db\n"
    "  verbatim doctor run.db\n"
    "\n"
    "verbatim COMMAND --help has examples for every option.";

std::string JoinCommandLine(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i == 0 ? "" : " ") + ShellWord(argv[i]);
  return line;
}

void AddCommands(CLI::App& app, Invocation& invocation) {
  app.name("verbatim");
  app.description(kDescription);
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("verbatim {}", ToolVersion()),
                       "Prints the version and exits");
  app.set_help_flag("-h,--help", "Prints this help and exits");
  app.add_flag("--no-color", invocation.no_color,
               "Uses no color, like the environment variable NO_COLOR. Example: verbatim verify "
               "run.db --no-color");
  app.get_formatter()->column_width(32);
  // Lets `verbatim verify run.db --no-color` work as well as `verbatim --no-color verify run.db`.
  app.fallthrough();
  app.require_subcommand(0, 1);
  AddCheckCommand(app, invocation);
  AddTrainCommand(app, invocation);
  AddVerifyCommand(app, invocation);
  AddResumeCommand(app, invocation);
  AddReplayCommand(app, invocation);
  AddDiffCommand(app, invocation);
  AddShowCommand(app, invocation);
  AddExportCommand(app, invocation);
  AddProfileCommand(app, invocation);
  AddSimulateCommand(app, invocation);
  AddHeadCommand(app, invocation);
  AddKeygenCommand(app, invocation);
  AddProofCommand(app, invocation);
  AddImportCommand(app, invocation);
  AddDoctorCommand(app, invocation);
}

/// The hint for a first argument that is no subcommand; empty where it is one, or an option.
std::string UnknownCommandHint(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string_view> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return "";
    names.push_back(command->get_name());
  }
  return SuggestName(argv[1], names);
}

int ReportParseError(const CLI::App& app, const CLI::ParseError& error,
                     const Invocation& invocation) {
  std::ostringstream out;
  std::ostringstream err;
  if (app.exit(error, out, err) == 0) {
    const Status written = WriteToStdout(out.str());
    if (!written) PrintError(written.error(), invocation.no_color);
    return written ? 0 : ExitCode(written.error().kind);
  }
  const std::string hint = UnknownCommandHint(app, invocation.argc, invocation.argv);
  if (!hint.empty()) {
    PrintError({ErrorKind::kUsage, fmt::format("unknown command '{}'", invocation.argv[1]), hint},
               invocation.no_color);
    return ExitCode(ErrorKind::kUsage);
  }
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  PrintError({ErrorKind::kUsage, error.what(),
              fmt::format("verbatim{} --help shows how it is used.", command)},
             invocation.no_color);
  return ExitCode(ErrorKind::kUsage);
}

int Run(Invocation& invocation) {
  CLI::App app;
  AddCommands(app, invocation);
  try {
    app.parse(invocation.argc, invocation.argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error, invocation);
  }
  // For everything that writes to the terminal from here on, the engine's process included.
  if (invocation.no_color) setenv("NO_COLOR", "1", 1);
  if (!invocation.action) {
    const std::string help = app.help();
    std::fwrite(help.data(), 1, help.size(), stderr);
    return ExitCode(ErrorKind::kUsage);
  }
  const Result<int> result = invocation.action();
  if (result) return *result;
  PrintError(result.error(), invocation.no_color);
  return ExitCode(result.error().kind);
}

}  // namespace

void AddFormatOption(CLI::App& command, std::string& format) {
  command
      .add_option("--format", format, "text for people, json for machines. Example: --format json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

CLI::Validator NamedPath() {
  const auto problem = [](const std::string& path) {
    return path.empty() ? std::string("an empty path was given") : std::string();
  };
  return CLI::Validator(problem, "");
}

bool NeedsForward(const Invocation& invocation, Numerics numerics) {
  return invocation.engine == nullptr || !IsNumericProfileSet(numerics);
}

int RunCommandLine(int argc, char** argv, Engine* engine) {
  // A reader that closes early (`| head`) then shows as a write error instead of ending us.
  std::signal(SIGPIPE, SIG_IGN);
  // Likewise for a file that reaches the size limit of the process (`ulimit -f`).
  std::signal(SIGXFSZ, SIG_IGN);
  Invocation invocation;
  invocation.argc = argc;
  invocation.argv = argv;
  invocation.engine = engine;
  try {
    invocation.command_line = JoinCommandLine(argc, argv);
    return Run(invocation);
  } catch (const std::exception& error) {
    PrintError({ErrorKind::kFailed, fmt::format("internal error: {}", error.what()),
                "Please report this with the command that you typed."},
               invocation.no_color);
  } catch (...) {
    PrintError({ErrorKind::kFailed, "internal error of an unknown kind",
                "Please report this with the command that you typed."},
               invocation.no_color);
  }
  return ExitCode(ErrorKind::kFailed);
}

}  // namespace verbatim
