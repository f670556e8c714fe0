// The command line as both executables have it.
#pragma once

#include "cli/engine.h"

namespace verbatim {

/// Parses the arguments, runs the subcommand and returns the exit code (docs/cli.md): 0 done and
/// equal, 1 a difference was found, 2 wrong usage, 3 bad or damaged input, 4 failed. `engine` is
/// null in the executable that links no LibTorch; subcommands that need one then become
/// verbatim-engine (cli/forward.h). Ignores SIGPIPE for the process. Results go to stdout, all else
/// to stderr. Throws nothing.
int RunCommandLine(int argc, char** argv, Engine* engine);

}  // namespace verbatim
