// Asking verbatim-engine what it computes with, in a process of its own: the libraries read a
// numeric profile's variables as they are loaded, so there is a process for every profile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"
#include "cli/engine.h"
#include "supernet/spec.h"

namespace verbatim {

/// What one process of the engine says of itself, as the hidden option `doctor --describe-engine`
/// prints it.
std::string EngineDescriptionJson(const EngineDescription& description);

/// Starts `engine` under `numerics` and has it describe itself for runs on `device` ("cpu", "cuda")
/// with that many threads per stage. kFailed where it cannot be started, fails, or answers
/// something else; what it wrote to standard error is left there.
Result<EngineDescription> AskEngine(const std::filesystem::path& engine, Numerics numerics,
                                    const std::string& device, std::int64_t threads_per_stage);

}  // namespace verbatim
