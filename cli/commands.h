// The subcommands, one file each. Every function adds one to the parser; when it has been typed,
// its action is left in Invocation and run after parsing.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "cli/engine.h"
#include "supernet/spec.h"

namespace verbatim {

/// One call of the program.
struct Invocation {
  int argc = 0;
  char** argv = nullptr;
  Engine* engine = nullptr;             ///< not owned; null where there is none
  bool no_color = false;                ///< --no-color
  std::string command_line;             ///< argv as one would type it
  std::function<Result<int>()> action;  ///< returns the exit code
};

/// Accepts whole numbers from `least` to `most`, in decimal digits without leading zeros, and says
/// so of anything else.
CLI::Validator WholeNumber(std::int64_t least, std::int64_t most);
/// The same of a seed: from 0 to 2⁶⁴ − 1.
CLI::Validator SeedNumber();

/// Refuses an empty path: a variable that is not set must not turn an option off.
CLI::Validator NamedPath();

/// Whether verbatim-engine must be started (anew) for a command that computes on tensors: this
/// process has no engine, or was started without the numeric profile's variables.
bool NeedsForward(const Invocation& invocation, Numerics numerics);

/// `--format text|json`, as every command that prints a report has it. `format` holds the default
/// and must outlive the parsing.
void AddFormatOption(CLI::App& command, std::string& format);

void AddTrainCommand(CLI::App& app, Invocation& invocation);
void AddVerifyCommand(CLI::App& app, Invocation& invocation);
void AddResumeCommand(CLI::App& app, Invocation& invocation);
void AddReplayCommand(CLI::App& app, Invocation& invocation);
void AddDiffCommand(CLI::App& app, Invocation& invocation);
void AddShowCommand(CLI::App& app, Invocation& invocation);
void AddExportCommand(CLI::App& app, Invocation& invocation);
void AddCheckCommand(CLI::App& app, Invocation& invocation);
void AddProfileCommand(CLI::App& app, Invocation& invocation);
void AddSimulateCommand(CLI::App& app, Invocation& invocation);
void AddHeadCommand(CLI::App& app, Invocation& invocation);
void AddKeygenCommand(CLI::App& app, Invocation& invocation);
void AddProofCommand(CLI::App& app, Invocation& invocation);
void AddImportCommand(CLI::App& app, Invocation& invocation);
void AddDoctorCommand(CLI::App& app, Invocation& invocation);

}  // namespace verbatim
