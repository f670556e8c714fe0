#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/command_line.h"
#include "cli/engine_marker.h"
#include "cli/engine_torch.h"
#include "trainer/tensor_memory.h"

namespace {

// Read from the file, never by the program: see cli/engine_marker.h.
[[gnu::used]] constexpr char kMarkedVersion[] = "verbatim-engine:" VERBATIM_VERSION;
static_assert(std::string_view(kMarkedVersion).starts_with(verbatim::kEngineMarker));

}  // namespace

int main(int argc, char** argv) {
  verbatim::PoolTensorMemory();
  verbatim::TorchEngine engine;
  const int code = verbatim::RunCommandLine(argc, argv, &engine);
  if (engine.has_stuck_stage()) {
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
