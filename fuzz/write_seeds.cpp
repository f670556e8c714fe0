// Usage: write_seeds TARGET FOLDER. Writes the inputs that a target makes by itself.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"

int main(int argc, char** argv) {
  const verbatim::fuzz::Target* target = argc == 3 ? verbatim::fuzz::FindTarget(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fputs("usage: write_seeds TARGET FOLDER\n", stderr);
    return 2;
  }
  if (target->seeds == nullptr) return 0;
  int count = 0;
  for (const std::string& seed : target->seeds()) {
    const auto path = std::filesystem::path(argv[2]) / ("seed-" + std::to_string(count++));
    if (!(std::ofstream(path, std::ios::binary) << seed).flush()) return 4;
  }
}
