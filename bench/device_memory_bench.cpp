// What it costs to train a supernet that is larger than the stages' memory: the same supernet with
// and without a budget, in turn, in one process.
//
// usage: device_memory_bench SPEC [GIB [BUDGET_MIB [STAGES [SUBNETS [ROUNDS]]]]]
// Every block gets copies of its candidates until the supernet's layers take GIB GiB. The stream is
// trained in sections of SUBNETS: in every round one with a budget and one without, each after a
// few subnets of warming up. Prints a line of JSON per round, and the medians of the rounds'
// ratios: of speeds, by the wall clock, and of processor times, all threads', which hold on a busy
// machine too.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/layer_copies.h"
#include "trainer/tensor_memory.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWarmup = 6;

struct Workload {
  fs::path spec;
  std::int64_t gibibytes = 8;
  std::int64_t budget_mebibytes = 64;
  std::int64_t stages = 2;
  std::int64_t subnets = 24;
  std::int64_t rounds = 5;
};

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "device_memory_bench: {}\n", result.error().message);
    std::exit(ExitCode(result.error().kind));
  }
  return *std::move(result);
}

std::int64_t BytesOf(const Experiment& experiment) {
  std::int64_t bytes = 0;
  for (const LayerBytes& layer : BytesOfLayers(experiment.layers)) bytes += layer.total();
  return bytes;
}

Experiment Prepare(const Spec& spec, const Workload& workload) {
  return OrDie(PrepareExperiment(spec, fs::absolute(workload.spec).parent_path(), {}, {at::kCPU}));
}

/// The spec with as many copies of its candidates as it takes.
Spec Enlarged(const Workload& workload) {
  Spec spec = OrDie(ReadSpec(workload.spec));
  const std::int64_t once = BytesOf(Prepare(spec, workload));
  const std::int64_t copies = ((workload.gibibytes << 30) + once - 1) / once;
  for (auto& block : spec.supernet.blocks) {
    const auto candidates = block.candidates;
    for (std::int64_t i = 1; i < copies; ++i) {
      block.candidates.insert(block.candidates.end(), candidates.begin(), candidates.end());
    }
  }
  return spec;
}

struct Measured {
  double subnets_per_second = 0.0;
  double processor_seconds = 0.0;
  std::optional<CacheStatistics> layers;
};

/// The next section of the stream.
Measured TrainSection(const Workload& workload, std::optional<std::int64_t> budget,
                      Experiment& experiment, std::int64_t& first) {
  TrainingOptions options;
  options.stages = workload.stages;
  options.in_flight = 2 * workload.stages;
  options.first = first;
  options.device_memory = budget;
  first += kWarmup + workload.subnets;
  experiment.spec.training.subnets = first;
  Clock::time_point begin;
  std::clock_t processor = 0;
  options.on_progress = [&](std::int64_t finished, float) {
    if (finished != options.first + kWarmup) return;
    begin = Clock::now();
    processor = std::clock();
  };
  const TrainingOutcome outcome = OrDie(Train(experiment, options));
  if (outcome.status != RunStatus::kComplete) {
    OrDie(Result<int>(Failed(outcome.detail)));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return {static_cast<double>(workload.subnets) / seconds,
          static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC, outcome.layers};
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Run(const Workload& workload) {
  PoolTensorMemory();
  ConfigureDeterminism();
  at::set_num_threads(1);
  Experiment experiment = Prepare(Enlarged(workload), workload);
  const std::int64_t budget = workload.budget_mebibytes << 20;
  fmt::print(R"({{"layers": {}, "bytes": {}, "budget": {}, "stages": {}}})"
             "\n",
             experiment.layers.size(), BytesOf(experiment), budget, workload.stages);
  std::vector<double> ratios;
  std::vector<double> processor_ratios;
  std::int64_t first = 0;
  for (std::int64_t round = 0; round < workload.rounds; ++round) {
    const Measured with = TrainSection(workload, budget, experiment, first);
    const Measured without = TrainSection(workload, {}, experiment, first);
    ratios.push_back(with.subnets_per_second / without.subnets_per_second);
    processor_ratios.push_back(with.processor_seconds / without.processor_seconds);
    fmt::print(
        R"({{"with": {:.3f}, "without": {:.3f}, "ratio": {:.3f}, "processor_ratio": {:.3f}, "hit_rate": {:.4f}, )"
        R"("bytes_loaded": {}, "bytes_written": {}, "peak_bytes": {}}})"
        "\n",
        with.subnets_per_second, without.subnets_per_second, ratios.back(), processor_ratios.back(),
        with.layers->HitRate(), with.layers->bytes_loaded, with.layers->bytes_written,
        *std::ranges::max_element(with.layers->peak_bytes));
    std::fflush(stdout);
  }
  fmt::print(R"({{"median_ratio": {:.3f}, "median_processor_ratio": {:.3f}}})"
             "\n",
             Median(ratios), Median(processor_ratios));
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  verbatim::Workload workload;
  if (argc < 2) {
    fmt::print(stderr,
               "usage: device_memory_bench SPEC [GIB [BUDGET_MIB [STAGES [SUBNETS [ROUNDS]]]]]\n");
    return 2;
  }
  workload.spec = argv[1];
  if (argc > 2) workload.gibibytes = std::atoll(argv[2]);
  if (argc > 3) workload.budget_mebibytes = std::atoll(argv[3]);
  if (argc > 4) workload.stages = std::atoll(argv[4]);
  if (argc > 5) workload.subnets = std::atoll(argv[5]);
  if (argc > 6) workload.rounds = std::atoll(argv[6]);
  verbatim::Run(workload);
}
