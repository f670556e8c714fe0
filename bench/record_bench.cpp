// What recording costs: the same run with and without it, in turn, in one process; or, where EVERY
// is given, what checkpoints cost: a recorded run with one after every EVERY subnets and one at the
// end, and the same without.
//
// usage: record_bench [SPEC [LEVEL [STAGES [SUBNETS [PAIRS [EVERY]]]]]]
// Prints one line per pair and the medians of the ratios. Compare ratios, not seconds: both halves
// of a pair run one after the other on the same machine, in alternating order. The ratio of
// processor time holds on a busy machine too; that of wall time needs a quiet one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recorder/recorded_checkpoints.h"
#include "recorder/recorder.h"
#include "store/checkpoint_files.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

struct Workload {
  std::filesystem::path spec = "examples/digits.json";
  std::string level = "weights";
  std::int64_t stages = 2;
  std::int64_t subnets = 100;
  int pairs = 7;
  std::optional<std::int64_t> every;  ///< checkpoints are measured, not recording
};

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "record_bench: {}\n", result.error().message);
    std::exit(ExitCode(result.error().kind));
  }
  return *std::move(result);
}

Experiment Prepare(const Workload& workload) {
  Spec spec = OrDie(ReadSpec(workload.spec));
  spec.training.subnets = workload.subnets;
  spec.record_level = OrDie(RecordLevelFromString(workload.level));
  return OrDie(PrepareExperiment(spec, std::filesystem::absolute(workload.spec).parent_path(),
                                 std::nullopt, {at::kCPU}));
}

struct Times {
  double wall_s = 0.0;
  double processor_s = 0.0;  ///< of all threads
};

/// Times one run, record closed and all, with or without what is measured; the experiment's set-up
/// is left out.
Times TimeRun(const Workload& workload, bool on) {
  const bool records = on || workload.every;
  const bool checkpoints = on && workload.every;
  Experiment experiment = Prepare(workload);
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("verbatim_record_bench.{}.db", getpid());
  const std::vector<LayerRow> layers = DescribeLayers(experiment);
  TrainingOptions options;
  options.stages = workload.stages;
  options.record_level = experiment.spec.record_level;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor_start = std::clock();
  std::unique_ptr<Recorder> recorder;
  if (records) {
    RunInfo run;
    run.spec_json = SpecToJson(experiment.spec);
    run.policy = options.policy;
    run.record_level = workload.level;
    run.device = "cpu";
    run.subnets_planned = workload.subnets;
    recorder =
        Recorder::Start(OrDie(RecordWriter::Create(path, run, {}, layers, /*overwrite=*/true)));
  }
  options.observer = recorder.get();
  std::unique_ptr<RecordedCheckpoints> sink;
  if (checkpoints) {
    sink = OrDie(RecordedCheckpoints::Open(path, *recorder, /*keep=*/2));
    options.checkpoints = {.sink = sink.get(), .every = *workload.every};
  }
  const TrainingOutcome outcome = OrDie(Train(experiment, options));
  if (recorder && !recorder->Close(outcome.status, outcome.detail, {})) std::exit(4);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
  std::filesystem::remove(path);
  std::filesystem::remove_all(CheckpointFolder(path));
  return {wall.count(), processor};
}

std::string DescribeRatios(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", ratios[ratios.size() / 2], ratios.front(),
                     ratios.back());
}

void Run(const Workload& workload) {
  ConfigureDeterminism();
  TimeRun(workload, true);  // warms up the libraries' own caches
  std::vector<double> wall_ratios;
  std::vector<double> processor_ratios;
  for (int pair = 0; pair < workload.pairs; ++pair) {
    const bool records_first = pair % 2 == 0;
    const Times first = TimeRun(workload, records_first);
    const Times second = TimeRun(workload, !records_first);
    const Times& on = records_first ? first : second;
    const Times& off = records_first ? second : first;
    wall_ratios.push_back(on.wall_s / off.wall_s);
    processor_ratios.push_back(on.processor_s / off.processor_s);
    fmt::print("on {:.3f} s ({:.3f} s of processor), off {:.3f} s ({:.3f} s)\n", on.wall_s,
               on.processor_s, off.wall_s, off.processor_s);
  }
  const std::string what =
      workload.every ? fmt::format("checkpoints every {}", *workload.every) : "recording";
  fmt::print("{}: {}, level {}, {} stages, {} subnets, on / off: processor {}, wall {}\n", what,
             workload.spec.string(), workload.level, workload.stages, workload.subnets,
             DescribeRatios(processor_ratios), DescribeRatios(wall_ratios));
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  verbatim::Workload workload;
  if (argc > 1) workload.spec = argv[1];
  if (argc > 2) workload.level = argv[2];
  if (argc > 3) workload.stages = std::atoll(argv[3]);
  if (argc > 4) workload.subnets = std::atoll(argv[4]);
  if (argc > 5) workload.pairs = std::atoi(argv[5]);
  if (argc > 6) workload.every = std::atoll(argv[6]);
  verbatim::Run(workload);
}
