// Writes a synthetic record (bench/synthetic/synthetic_record.h), for measurements and tests that
// need one of a size that nobody would train.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/synthetic/synthetic_record.h"

int main(int argc, char** argv) {
  verbatim::SyntheticOptions options;
  std::string path;
  bool overwrite = false;
  CLI::App app("Writes a sound record of a run that nobody trained.");
  app.add_option("path", path, "The record to write")->required();
  app.add_option("--subnets", options.subnets, "Subnets that are planned");
  app.add_option("--trained", options.trained, "Subnets that are recorded; all by default");
  app.add_option("--blocks", options.blocks, "Choice blocks; stem and head come on top");
  app.add_option("--candidates", options.candidates, "Candidates per block");
  app.add_option("--batch", options.batch, "Samples per subnet");
  app.add_option("--stages", options.stages, "Stages");
  app.add_option("--microbatches", options.microbatches, "Micro-batches");
  app.add_option("--flip", options.flipped, "A subnet that leaves another bit in one layer");
  app.add_flag("--force", overwrite, "Replace an old record");
  CLI11_PARSE(app, argc, argv);
  const auto written = verbatim::WriteSyntheticRecord(path, options, overwrite);
  if (written) return 0;
  std::fprintf(stderr, "make_record: %s\n", written.error().message.c_str());
  return verbatim::ExitCode(written.error().kind);
}
