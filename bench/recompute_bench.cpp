// What it saves and costs to compute activations again (`--recompute`): the same run without and
// with it, in turn, in one process.
//
// usage: recompute_bench [SPEC [STAGES [IN_FLIGHT [SUBNETS [ROUNDS [DATA [RANGES…]]]]]]]
// DATA replaces the spec's data folder, but "-". RANGES are as --recompute takes them; by default
// all, and as many ranges as blocks in each. Prints one line per plan: the most memory of tensors
// beside supernet and data (activations, gradients and what operators use at the moment), over that
// without recompute, and the medians of the ratios of processor and wall time. Exits with 1 where a
// plan leaves other weights.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/tensor_memory.h"
#include "trainer/training.h"

namespace verbatim {
namespace {

struct Workload {
  std::filesystem::path spec = "examples/digits.json";
  std::int64_t stages = 1;
  std::int64_t in_flight = 4;
  std::int64_t subnets = 20;
  int rounds = 5;
  std::optional<std::filesystem::path> data;
  std::vector<std::string> plans;
};

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "recompute_bench: {}\n", result.error().message);
    std::exit(ExitCode(result.error().kind));
  }
  return *std::move(result);
}

Experiment Prepare(const Workload& workload) {
  Spec spec = OrDie(ReadSpec(workload.spec));
  spec.training.subnets = workload.subnets;
  return OrDie(PrepareExperiment(spec, std::filesystem::absolute(workload.spec).parent_path(),
                                 workload.data, {at::kCPU}));
}

struct Measured {
  double wall_s = 0.0;
  double processor_s = 0.0;  ///< of all threads
  std::int64_t peak_bytes = 0;
  std::vector<LayerRow> layers;  ///< as they were left
};

Measured MeasureRun(const Workload& workload, const std::string& plan) {
  Experiment experiment = Prepare(workload);
  TrainingOptions options;
  options.stages = workload.stages;
  options.in_flight = workload.in_flight;
  options.recompute = plan;
  ForgetTensorPeak();
  const std::int64_t before = UsedTensorMemory().now;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor_start = std::clock();
  const TrainingOutcome outcome = OrDie(Train(experiment, options));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
  if (outcome.status != RunStatus::kComplete) {
    fmt::print(stderr, "recompute_bench: {}\n", outcome.detail);
    std::exit(4);
  }
  return {wall.count(), processor, UsedTensorMemory().peak - before, DescribeLayers(experiment)};
}

std::string DescribeRatios(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", ratios[ratios.size() / 2], ratios.front(),
                     ratios.back());
}

/// "1-4,5-8,…": about as many ranges as blocks in each.
std::string SquareRanges(int blocks) {
  const int size = std::max(1, static_cast<int>(std::lround(std::sqrt(blocks))));
  std::string ranges;
  for (int first = 1; first <= blocks; first += size) {
    ranges +=
        fmt::format("{}{}-{}", first == 1 ? "" : ",", first, std::min(blocks, first + size - 1));
  }
  return ranges;
}

/// Whether the plan leaves the weights that `plain` runs leave.
bool ComparePlan(const Workload& workload, const std::string& plan) {
  std::vector<double> wall_ratios;
  std::vector<double> processor_ratios;
  std::int64_t peak_bytes = 0;
  std::int64_t plain_peak_bytes = 0;
  bool are_equal = true;
  for (int round = 0; round < workload.rounds; ++round) {
    const bool is_first = round % 2 == 0;
    const Measured first = MeasureRun(workload, is_first ? plan : "none");
    const Measured second = MeasureRun(workload, is_first ? "none" : plan);
    const Measured& with = is_first ? first : second;
    const Measured& without = is_first ? second : first;
    wall_ratios.push_back(with.wall_s / without.wall_s);
    processor_ratios.push_back(with.processor_s / without.processor_s);
    peak_bytes = std::max(peak_bytes, with.peak_bytes);
    plain_peak_bytes = std::max(plain_peak_bytes, without.peak_bytes);
    are_equal = are_equal && with.layers == without.layers;
  }
  constexpr double kMebibyte = 1 << 20;
  const auto peak = static_cast<double>(peak_bytes);
  const auto plain_peak = static_cast<double>(plain_peak_bytes);
  fmt::print("recompute {}: peak {:.1f} MiB, over {:.1f}: {:.3f}; processor {}, wall {}; {}\n",
             plan, peak / kMebibyte, plain_peak / kMebibyte, peak / plain_peak,
             DescribeRatios(processor_ratios), DescribeRatios(wall_ratios),
             are_equal ? "equal weights" : "OTHER WEIGHTS");
  return are_equal;
}

int Run(Workload workload) {
  PoolTensorMemory();
  ConfigureDeterminism();
  at::set_num_threads(1);
  if (workload.plans.empty()) {
    workload.plans = {"all", SquareRanges(Prepare(workload).space.blocks())};
  }
  fmt::print("{}, {} stages, {} in flight, {} subnets\n", workload.spec.string(), workload.stages,
             workload.in_flight, workload.subnets);
  MeasureRun(workload, "none");  // warms up the libraries' own caches
  bool are_equal = true;
  for (const std::string& plan : workload.plans) {
    are_equal = ComparePlan(workload, plan) && are_equal;
  }
  return are_equal ? 0 : 1;
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  verbatim::Workload workload;
  if (argc > 1) workload.spec = argv[1];
  if (argc > 2) workload.stages = std::atoll(argv[2]);
  if (argc > 3) workload.in_flight = std::atoll(argv[3]);
  if (argc > 4) workload.subnets = std::atoll(argv[4]);
  if (argc > 5) workload.rounds = std::atoi(argv[5]);
  if (argc > 6 && std::string(argv[6]) != "-") workload.data = argv[6];
  for (int i = 7; i < argc; ++i) workload.plans.emplace_back(argv[i]);
  return verbatim::Run(std::move(workload));
}
