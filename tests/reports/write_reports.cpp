// Writes reports of every kind into the folder that it is given, for the tests in Python beside it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "tests/verify/sample_verdicts.h"
#include "verify/report.h"
#include "verify/report_junit.h"
#include "verify/report_markdown.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  VERBATIM_CHECK(file.good(), "{} cannot be written", path.string());
}

void WriteReports(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, verdict] : SampleVerdicts()) {
    WriteFile(folder / (name + ".json"), RenderJson(verdict, "0.1.0"));
    WriteFile(folder / (name + ".xml"), RenderJunit(verdict, "0.1.0"));
    WriteFile(folder / (name + ".md"), RenderMarkdown(verdict));
  }
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_reports FOLDER\n");
    return 2;
  }
  verbatim::WriteReports(argv[1]);
  return 0;
}
