// Speed of a training's steady loop: from the subnet that ends the warm-up to the last one.
//
// usage: train_bench SPEC [STAGES [LEVEL [SUBNETS [WARMUP [IN_FLIGHT [DATA]]]]]]
// LEVEL is what is recorded, into a temporary file: off, losses, weights or full. DATA replaces the
// spec's data folder. Prints one line of JSON: subnets timed, seconds of wall clock and of
// processor (all threads), and the process's memory in bytes: when training began, and at its peak.
// bench/peers runs it beside other trainers.
//
// Started as ranks of one run, by a launcher's variables, on one host: each process prints a line,
// rank 0 also the bytes that ranks sent each other and the least that the partition needs. Rank 0's
// time ends with the last subnet, before the others hand their layers over; the processor time of
// the others is their share of the whole training's, as they are not told of the warm-up's end.
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
#include "schedule/rank_traffic.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/tcp_store.h"
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
  return OrDie(PrepareExperiment(spec, fs::absolute(workload.spec).parent_path(), workload.data,
                                 {at::kCPU}));
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

/// The other ranks, where a launcher has started this process as one of several.
struct Ranks {
  std::unique_ptr<RendezvousStore> store;
  std::unique_ptr<Network> network;

  bool IsFirst() const { return !network || network->rank() == 0; }
};

Ranks JoinRanks() {
  const auto setting =
      OrDie(ReadRankSetting([](const char* name) -> const char* { return std::getenv(name); }));
  if (!setting) return {};
  Ranks ranks;
  ranks.store = OrDie(OpenTcpStore(*setting, {}));
  ranks.network = OrDie(Join(*setting, {}, {.task_json = "{}"}, "", *ranks.store)).network;
  return ranks;
}

/// The least that the ranks have to send each other.
std::int64_t LeastBytes(const Workload& workload, const Experiment& experiment, int ranks) {
  const CostTable costs = AnalyticCosts(experiment.space, experiment.spec);
  const auto partition = OrDie(MakePartition("balanced", experiment.space, costs, workload.stages));
  const TrainingSpec& training = experiment.spec.training;
  const auto rows = [&](std::int64_t microbatch) {
    return static_cast<double>(
        MicrobatchRows(training.batch, training.microbatches, microbatch).size());
  };
  RankTraffic traffic(
      experiment.space, costs, *partition, OrDie(Placement::Make(workload.stages, ranks)),
      static_cast<std::int32_t>(training.microbatches), rows(training.microbatches - 1) / rows(0));
  for (std::int64_t seq = 0; seq < workload.subnets; ++seq) {
    traffic.Add(seq, experiment.sampler->Draw(seq));
  }
  const MovedBytes& bytes = traffic.bytes();
  return bytes.activations + bytes.gradients + bytes.versions;
}

struct Measured {
  Moment begin;
  Moment end;
  std::int64_t start_bytes = 0;
  TrainingOutcome outcome;
};

void Report(const Workload& workload, const Experiment& experiment, const Ranks& ranks,
            const Measured& measured) {
  double processor = static_cast<double>(measured.end.processor - measured.begin.processor);
  const std::int64_t timed = workload.subnets - workload.warmup;
  if (!ranks.IsFirst()) processor *= static_cast<double>(timed) / workload.subnets;
  fmt::print(
      R"({{"subnets": {}, "seconds": {:.6f}, "processor_seconds": {:.6f}, "start_bytes": {}, "peak_bytes": {})",
      timed, std::chrono::duration<double>(measured.end.wall - measured.begin.wall).count(),
      processor / CLOCKS_PER_SEC, measured.start_bytes, MemoryBytes("VmHWM:"));
  if (ranks.network && ranks.IsFirst()) {
    fmt::print(R"(, "moved_bytes_per_subnet": {}, "least_bytes_per_subnet": {})",
               measured.outcome.bytes_moved / workload.subnets,
               LeastBytes(workload, experiment, ranks.network->ranks()) / workload.subnets);
  }
  fmt::print("}}\n");
}

void Run(const Workload& workload) {
  PoolTensorMemory();
  ConfigureDeterminism();
  at::set_num_threads(1);
  Experiment experiment = Prepare(workload);
  const Ranks ranks = JoinRanks();
  const fs::path path =
      fs::temp_directory_path() / fmt::format("verbatim_train_bench.{}.db", getpid());
  const auto recorder = ranks.IsFirst() ? StartRecorder(workload, experiment, path) : nullptr;
  Measured measured;
  measured.start_bytes = MemoryBytes("VmRSS:");
  TrainingOptions options;
  options.stages = workload.stages;
  options.in_flight = workload.in_flight;
  options.record_level = experiment.spec.record_level;
  options.observer = recorder.get();
  options.network = ranks.network.get();
  options.is_observed = !ranks.IsFirst() && workload.level != "off";
  std::optional<Moment> last_finished;
  options.on_progress = [&](std::int64_t finished, float) {
    if (finished == workload.warmup) measured.begin = Moment();
    if (finished == workload.subnets) last_finished = Moment();
  };
  measured.begin = Moment();
  measured.outcome = OrDie(Train(experiment, options));
  const TrainingOutcome& outcome = measured.outcome;
  if (outcome.status != RunStatus::kComplete) OrDie<void>(Failed(outcome.detail));
  if (recorder) OrDie(recorder->Close(outcome.status, outcome.detail, {}));
  measured.end = ranks.network && last_finished ? *last_finished : Moment();
  fs::remove(path);
  Report(workload, experiment, ranks, measured);
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
