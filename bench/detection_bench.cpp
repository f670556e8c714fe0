// How well faults are found: trains a small run with each class of fault under many seeds and
// layouts, verifies its record as `verify --reexecute all` does, and counts what was found, under
// which class and at which place. Then runs without a fault, in which nothing may be found.
//
// usage: detection_bench [SEEDS [CLEAN_RUNS [SPEC]]]
// Prints a Markdown table and, for every fault missed or misplaced and every false alarm, a line.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "recorder/recorder.h"
#include "replay/plan.h"
#include "replay/reexecute.h"
#include "store/reader.h"
#include "store/record_fault.h"
#include "trainer/environment.h"
#include "trainer/evaluation.h"
#include "trainer/experiment.h"
#include "trainer/fault_injection.h"
#include "trainer/training.h"
#include "verify/comparator.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "detection_bench: {}\n", result.error().message);
    std::exit(ExitCode(result.error().kind));
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// One run to train: what of the spec and the layout varies.
struct Variant {
  std::uint64_t seed = 1;
  std::int64_t stages = 1;
  std::int64_t in_flight = 4;
  RecordLevel level = RecordLevel::kFull;
};

std::string ToString(const Variant& variant) {
  return fmt::format("seed {}, {} stages, {} in flight, level {}", variant.seed, variant.stages,
                     variant.in_flight, ToString(variant.level));
}

/// The n-th layout, so that all stages meet all numbers of subnets in flight.
Variant NthVariant(std::int64_t n) {
  static constexpr std::int64_t kStages[] = {1, 2, 3, 5};
  static constexpr std::int64_t kInFlight[] = {1, 3, 4, 8, 16};
  return {static_cast<std::uint64_t>(n + 1), kStages[n % 4], kInFlight[n % 5], RecordLevel::kFull};
}

/// Trains runs of one spec into a temporary record and verifies it.
class Laboratory {
 public:
  explicit Laboratory(const fs::path& spec)
      : spec_(OrDie(ReadSpec(spec))),
        folder_(fs::absolute(spec).parent_path()),
        record_(fs::temp_directory_path() / fmt::format("verbatim_detection.{}.db", getpid())) {}
  ~Laboratory() { fs::remove(record_); }
  Laboratory(const Laboratory&) = delete;
  Laboratory& operator=(const Laboratory&) = delete;

  /// Trains and records; with a fault where there is one, whose plan it returns. A run that fails
  /// ends the program.
  FaultPlan TrainRun(const Variant& variant, std::optional<FaultKind> kind) const {
    Spec spec = spec_;
    spec.seed = variant.seed;
    spec.record_level = variant.level;
    Experiment experiment = OrDie(PrepareExperiment(spec, folder_, std::nullopt, {at::kCPU}));
    FaultPlan plan;
    TrainingOptions options;
    options.stages = variant.stages;
    options.in_flight = variant.in_flight;
    options.record_level = variant.level;
    std::unique_ptr<FaultInjection> injection;
    if (kind) {
      plan = OrDie(PlanFault({*kind, std::nullopt}, {spec, experiment.space, *experiment.sampler}));
      injection = MakeFaultInjection(plan, spec, options.threads_per_stage);
    }
    options.probe = injection.get();
    Record(experiment, options);
    if (kind && IsRecordFault(*kind)) Damage(plan);
    return plan;
  }

  /// What `verify --reexecute all` says of the record. Nothing: it could not be opened, and is
  /// reported as a damaged file.
  std::optional<Verdict> Verify() const {
    const auto reader = RecordReader::Open(record_);
    if (!reader) return std::nullopt;
    Verdict verdict = ExamineRecord(**reader, record_.string());
    if (verdict.damaged || verdict.counts.subnets_audited == 0) return verdict;
    Comparator comparator = OrDie(Comparator::Create(**reader, record_.string(), {}));
    const ReplayPlan plan = OrDie(PlanReplay(**reader, verdict.counts.subnets_audited, {}));
    ReexecuteOptions options;
    options.subnets = plan.subnets;
    options.evaluate = true;
    OrDie(Reexecute(verdict.run, options, comparator));
    OrDie(comparator.status());
    comparator.AddTo(verdict);
    return verdict;
  }

 private:
  void Record(Experiment& experiment, TrainingOptions& options) const {
    RunInfo run;
    run.tool_version = "detection_bench";
    run.spec_json = SpecToJson(experiment.spec);
    run.spec_folder = folder_.string();
    run.policy = options.policy;
    run.record_level = ToString(options.record_level);
    run.device = "cpu";
    run.stages = options.stages;
    run.in_flight = options.in_flight;
    run.subnets_planned = experiment.spec.training.subnets;
    run.dataset_digest = experiment.dataset->digest();
    run.started_utc = "2026-01-01T00:00:00Z";
    const auto environment = DescribeEnvironment(experiment.device, options.threads_per_stage);
    const auto recorder = Recorder::Start(OrDie(RecordWriter::Create(
        record_, run, environment, DescribeLayers(experiment), /*overwrite=*/true)));
    options.observer = recorder.get();
    const TrainingOutcome outcome = OrDie(Train(experiment, options));
    if (outcome.status != RunStatus::kComplete) OrDie<void>(Failed(outcome.detail));
    OrDie(recorder->Close(outcome.status, "", EvaluateSubnets(experiment, {})));
  }

  void Damage(const FaultPlan& plan) const {
    if (plan.kind == FaultKind::kRewrittenRow) {
      OrDie(RewriteAccessRow(record_, *plan.place.seq, *plan.place.layer));
    } else if (plan.kind == FaultKind::kDeletedRow) {
      OrDie(DeleteSubnetRow(record_, *plan.place.seq));
    } else {
      OrDie(TruncateFile(record_));
    }
  }

  Spec spec_;
  fs::path folder_;
  fs::path record_;
};

/// What a fault should be called.
std::string ExpectedClass(FaultKind kind) {
  if (IsRecordFault(kind)) return "damaged";
  if (kind == FaultKind::kDroppedDependency) return ToString(DifferenceClass::kSchedule);
  if (kind == FaultKind::kSwappedSamples) return ToString(DifferenceClass::kSampleOrder);
  return ToString(DifferenceClass::kComputation);
}

std::string FoundClass(const std::optional<Verdict>& verdict) {
  if (!verdict || verdict->damaged) return "damaged";
  return verdict->first_difference ? ToString(verdict->first_difference->kind) : "nothing";
}

InjectedPlace FoundPlace(const std::optional<Verdict>& verdict) {
  if (!verdict) return {};
  if (verdict->damaged) return {verdict->first_damaged_subnet, std::nullopt, "", std::nullopt};
  if (!verdict->first_difference) return {};
  const Difference& first = *verdict->first_difference;
  return {first.seq, first.layer, first.layer_name, first.phase};
}

/// Damage is found by subnet, and which sum first comes out otherwise with another number of
/// threads is LibTorch's affair.
bool IsSamePlace(const FaultPlan& plan, const InjectedPlace& found) {
  if (found.seq != plan.place.seq) return false;
  if (IsRecordFault(plan.kind) || plan.kind == FaultKind::kThreadCount) return true;
  return found.layer == plan.place.layer && found.phase == plan.place.phase;
}

struct Score {
  int runs = 0;
  int detected = 0;
  int class_right = 0;
  int place_right = 0;
};

Score ScoreFault(const Laboratory& laboratory, FaultKind kind, int seeds) {
  Score score;
  for (int n = 0; n < seeds; ++n) {
    const Variant variant = NthVariant(n);
    const FaultPlan plan = laboratory.TrainRun(variant, kind);
    const std::optional<Verdict> verdict = laboratory.Verify();
    const std::string found = FoundClass(verdict);
    const bool class_right = found == ExpectedClass(kind);
    const bool place_right = class_right && IsSamePlace(plan, FoundPlace(verdict));
    ++score.runs;
    score.detected += found != "nothing";
    score.class_right += class_right;
    score.place_right += place_right;
    if (place_right) continue;
    fmt::print(stderr, "{}, {}: {} at {} was found as {} at {}\n", ToString(kind),
               ToString(variant), ToString(kind), ToString(plan.place), found,
               ToString(FoundPlace(verdict)));
  }
  return score;
}

void PrintFaults(const Laboratory& laboratory, int seeds) {
  fmt::print(
      "| fault | runs | detected | class right | place right | class | place |\n"
      "|---|---|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < FaultNames().size(); ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const Score score = ScoreFault(laboratory, kind, seeds);
    const char* place = kind == FaultKind::kTruncatedFile                        ? "file"
                        : IsRecordFault(kind) || kind == FaultKind::kThreadCount ? "subnet"
                        : kind == FaultKind::kSwappedSamples                     ? "subnet"
                                                             : "subnet, layer, phase";
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", ToString(kind), score.runs, score.detected,
               score.class_right, score.place_right, ExpectedClass(kind), place);
    std::fflush(stdout);
  }
}

void PrintClean(const Laboratory& laboratory, int runs) {
  static constexpr RecordLevel kLevels[] = {RecordLevel::kLosses, RecordLevel::kWeights,
                                            RecordLevel::kFull};
  int alarms = 0;
  for (int n = 0; n < runs; ++n) {
    Variant variant = NthVariant(n);
    variant.level = kLevels[n % 3];
    laboratory.TrainRun(variant, std::nullopt);
    const std::optional<Verdict> verdict = laboratory.Verify();
    if (verdict && verdict->exit_code() == 0 && verdict->reexecuted) continue;
    ++alarms;
    fmt::print(stderr, "false alarm, {}: {} at {}\n", ToString(variant), FoundClass(verdict),
               ToString(FoundPlace(verdict)));
  }
  fmt::print("\n{} runs without a fault: {} false alarms\n", runs, alarms);
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 25;
  const int clean_runs = argc > 2 ? std::atoi(argv[2]) : 200;
  verbatim::ConfigureDeterminism();
  const verbatim::Laboratory laboratory(argc > 3 ? argv[3] : "bench/detection.json");
  verbatim::PrintFaults(laboratory, seeds);
  verbatim::PrintClean(laboratory, clean_runs);
}
