// Speed of a training's steady loop: from the subnet that ends the warm-up to the last one.
//
// usage: train_bench SPEC [STAGES [LEVEL [SUBNETS [WARMUP [IN_FLIGHT [DATA]]]]]]
// LEVEL is what is recorded, into a temporary file: off, losses, weights or full. DATA replaces the
// spec's data folder. Prints one line of JSON: subnets timed, seconds of wall clock and of
// processor (all threads), and the process's memory in bytes: when training began, and at its peak.
// bench/peers runs it beside other trainers.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "recorder/recorder.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/tensor_memory.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct Workload {
  fs::path spec;
  std::int64_t stages = 1;
  std::string level = "off";
  std::int64_t subnets = 100;
  std::int64_t warmup = 20;
  std::int64_t in_flight = 4;
  std::optional<fs::path> data;
};

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "train_bench: {}\n", result.error().message);
    std::exit(ExitCode(result.error().kind));
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Both clocks at one moment.
struct Moment {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  std::clock_t processor = std::clock();
};

/// A size of this process from /proc/self/status, such as "VmHWM:", in bytes.
std::int64_t MemoryBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

Experiment Prepare(const Workload& workload) {
  Spec spec = OrDie(ReadSpec(workload.spec));
  spec.training.subnets = workload.subnets;
  if (workload.level != "off") spec.record_level = OrDie(RecordLevelFromString(workload.level));
  return OrDie(
      PrepareExperiment(spec, fs::absolute(workload.spec).parent_path(), workload.data, at::kCPU));
}

std::unique_ptr<Recorder> StartRecorder(const Workload& workload, const Experiment& experiment,
                                        const fs::path& path) {
  if (workload.level == "off") return nullptr;
  RunInfo run;
  run.spec_json = SpecToJson(experiment.spec);
  run.policy = "causal";
  run.record_level = workload.level;
  run.device = "cpu";
  run.stages = workload.stages;
  run.in_flight = workload.in_flight;
  run.subnets_planned = workload.subnets;
  return Recorder::Start(
      OrDie(RecordWriter::Create(path, run, {}, DescribeLayers(experiment), /*overwrite=*/true)));
}

void Report(const Workload& workload, const Moment& begin, const Moment& end,
            std::int64_t start_bytes) {
  fmt::print(
      R"({{"subnets": {}, "seconds": {:.6f}, "processor_seconds": {:.6f}, "start_bytes": {}, "peak_bytes": {}}})"
      "\n",
      workload.subnets - workload.warmup,
      std::chrono::duration<double>(end.wall - begin.wall).count(),
      static_cast<double>(end.processor - begin.processor) / CLOCKS_PER_SEC, start_bytes,
      MemoryBytes("VmHWM:"));
}

void Run(const Workload& workload) {
  PoolTensorMemory();
  ConfigureDeterminism();
  at::set_num_threads(1);
  Experiment experiment = Prepare(workload);
  const fs::path path =
      fs::temp_directory_path() / fmt::format("verbatim_train_bench.{}.db", getpid());
  const auto recorder = StartRecorder(workload, experiment, path);
  const std::int64_t start_bytes = MemoryBytes("VmRSS:");
  Moment begin;
  TrainingOptions options;
  options.stages = workload.stages;
  options.in_flight = workload.in_flight;
  options.record_level = experiment.spec.record_level;
  options.observer = recorder.get();
  options.on_progress = [&](std::int64_t finished, float) {
    if (finished == workload.warmup) begin = Moment();
  };
  const TrainingOutcome outcome = OrDie(Train(experiment, options));
  if (outcome.status != RunStatus::kComplete) OrDie<void>(Failed(outcome.detail));
  if (recorder) OrDie(recorder->Close(outcome.status, outcome.detail, {}));
  const Moment end;
  fs::remove(path);
  Report(workload, begin, end, start_bytes);
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  verbatim::Workload workload;
  if (argc < 2) {
    fmt::print(stderr,
               "usage: train_bench SPEC [STAGES [LEVEL [SUBNETS [WARMUP [IN_FLIGHT [DATA]]]]]]\n");
    return 2;
  }
  workload.spec = argv[1];
  if (argc > 2) workload.stages = std::atoll(argv[2]);
  if (argc > 3) workload.level = argv[3];
  if (argc > 4) workload.subnets = std::atoll(argv[4]);
  if (argc > 5) workload.warmup = std::atoll(argv[5]);
  if (argc > 6) workload.in_flight = std::atoll(argv[6]);
  if (argc > 7) workload.data = argv[7];
  verbatim::Run(workload);
}
