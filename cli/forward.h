// Handing a command over to `verbatim-engine`, the same command line with LibTorch linked.
//
// The numeric profile's variables (docs/spec.md, section 9) are read by libraries as they are
// loaded, so they are set here, before the engine's process begins.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/processor.h"
#include "base/status.h"
#include "supernet/spec.h"

namespace verbatim {

/// Environment variables that hold the libraries at `numerics`; empty for kNative, which leaves the
/// user's own settings alone.
std::vector<std::pair<std::string, std::string>> NumericProfileVariables(Numerics numerics);
/// Sets them in this process.
void SetNumericProfile(Numerics numerics);
/// Whether this process has them as SetNumericProfile would set them.
bool IsNumericProfileSet(Numerics numerics);

/// The executable that $VERBATIM_ENGINE names; else `verbatim-engine` in `folder` (where this
/// program lies), else in folder/../libexec/verbatim. kFailed, saying how to get one, where there
/// is none, or where it is another program or of another version (cli/engine_marker.h).
Result<std::filesystem::path> FindEngine(const std::filesystem::path& folder);

/// kFailed where the processor lacks an instruction set that the profile asks for, naming it. The
/// libraries take the profile's word and would end with an illegal instruction.
Status CheckProcessor(Numerics numerics, const Processor& processor);

/// The running executable, and its folder.
std::filesystem::path ExecutablePath();
std::filesystem::path ExecutableFolder();

/// Checks the processor, sets the profile and becomes verbatim-engine with the same arguments.
/// Returns only with an error. Sets VERBATIM_FORWARDED, and fails where it is set: a wrapper around
/// the engine that starts this program instead would do so for ever.
Error ForwardToEngine(char** argv, Numerics numerics);

}  // namespace verbatim
