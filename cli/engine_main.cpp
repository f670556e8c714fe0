#include "cli/command_line.h"
#include "cli/engine_torch.h"

int main(int argc, char** argv) {
  verbatim::TorchEngine engine;
  return verbatim::RunCommandLine(argc, argv, &engine);
}
