#include "cli/command_line.h"

int main(int argc, char** argv) {
  return verbatim::RunCommandLine(argc, argv, nullptr);
}
