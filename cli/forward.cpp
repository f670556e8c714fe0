#include "cli/forward.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "cli/engine_marker.h"
#include "supernet/numeric_profile.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kForwarded = "VERBATIM_FORWARDED";

bool IsExecutable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

Result<fs::path> Checked(const fs::path& engine) {
  RETURN_IF_ERROR(CheckEngineFile(engine));
  return engine;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> NumericProfileVariables(Numerics numerics) {
  switch (numerics) {
    case Numerics::kNative:
      return {};
    case Numerics::kX8664V3:
      return {{"ATEN_CPU_CAPABILITY", "avx2"},
              {"ONEDNN_MAX_CPU_ISA", "AVX2"},
              {"MKL_CBWR", "COMPATIBLE"}};
    case Numerics::kX8664:
      return {{"ATEN_CPU_CAPABILITY", "default"},
              {"ONEDNN_MAX_CPU_ISA", "SSE41"},
              {"MKL_CBWR", "COMPATIBLE"}};
  }
  return {};
}

void SetNumericProfile(Numerics numerics) {
  for (const auto& [name, value] : NumericProfileVariables(numerics)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
}

bool IsNumericProfileSet(Numerics numerics) {
  for (const auto& [name, value] : NumericProfileVariables(numerics)) {
    const char* set = std::getenv(name.c_str());
    if (set == nullptr || value != set) return false;
  }
  return true;
}

Status CheckProcessor(Numerics numerics, const Processor& processor) {
  const auto missing = MissingInstructionSets(numerics, processor.instruction_sets);
  if (missing.empty()) return {};
  return Failed(fmt::format("this processor, {}, lacks {}, which the numeric profile {} needs",
                            processor.model, fmt::join(missing, ", "), ToString(numerics)),
                "verbatim doctor says which profiles can be computed here.");
}

fs::path ExecutablePath() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : self;
}

fs::path ExecutableFolder() {
  return ExecutablePath().parent_path();
}

Result<fs::path> FindEngine(const fs::path& folder) {
  if (const char* named = std::getenv("VERBATIM_ENGINE"); named != nullptr && *named != '\0') {
    if (IsExecutable(named)) return Checked(named);
    return Failed(fmt::format("VERBATIM_ENGINE names {}, which is no executable file", named),
                  "Let it name a verbatim-engine, or unset it.");
  }
  for (const fs::path& candidate :
       {folder / "verbatim-engine", folder / ".." / "libexec" / "verbatim" / "verbatim-engine"}) {
    if (IsExecutable(candidate)) return Checked(candidate.lexically_normal());
  }
  return Failed("this installation has no trainer: verbatim-engine was not found",
                fmt::format("Build with -DVERBATIM_TRAINER=ON (needs LibTorch; scripts/setup "
                            "installs it), put verbatim-engine\ninto {}, or let the environment "
                            "variable VERBATIM_ENGINE name it.",
                            folder.string()));
}

Error ForwardToEngine(char** argv, Numerics numerics) {
  const Status fits = CheckProcessor(numerics, DescribeProcessor());
  if (!fits) return fits.error();
  const auto engine = FindEngine(ExecutableFolder());
  if (!engine) return engine.error();
  if (std::getenv(kForwarded) != nullptr) {
    return Error{ErrorKind::kFailed,
                 fmt::format("{} started verbatim, not verbatim-engine", engine->string()),
                 "Let VERBATIM_ENGINE name a verbatim-engine, or unset it."};
  }
  SetNumericProfile(numerics);
  setenv(kForwarded, "1", 1);
  std::fflush(nullptr);
  execv(engine->c_str(), argv);
  return Error{ErrorKind::kFailed,
               fmt::format("{} cannot be executed: {}", engine->string(), std::strerror(errno)),
               "Build it again for this machine, or let VERBATIM_ENGINE name another."};
}

}  // namespace verbatim
