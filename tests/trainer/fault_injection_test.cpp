// Each fault changes a run first where its plan says, in the way that its class says, and nothing
// before; on any layout it leaves the same bits.
#include "trainer/fault_injection.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"
#include "verify/layer_table.h"
#include "verify/subnet_difference.h"

namespace verbatim {
namespace {

Spec FaultySpec() {
  Spec spec = SmallSpec();
  spec.training.microbatches = 3;
  spec.record_level = RecordLevel::kFull;
  return spec;
}

FaultPlan PlanFor(const std::string& fault, const Experiment& experiment) {
  auto plan = PlanFault(ParseFault(fault).value(),
                        {experiment.spec, experiment.space, *experiment.sampler});
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return *plan;
}

std::vector<SubnetRow> RowsWith(const Spec& spec, std::int64_t stages, StageProbe* probe,
                                TrainingOutcome* outcome = nullptr) {
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.stages = stages;
  options.record_level = spec.record_level;
  options.probe = probe;
  return TrainedRows(experiment, options, outcome);
}

LayerTable TableOf(const Experiment& experiment) {
  return LayerTable::Build(DescribeLayers(experiment)).value();
}

/// The first difference of two runs in everything that is recorded.
std::optional<Difference> FirstDifference(const LayerTable& table,
                                          const std::vector<SubnetRow>& recorded,
                                          const std::vector<SubnetRow>& expected) {
  EXPECT_EQ(recorded.size(), expected.size());
  for (std::size_t i = 0; i < std::min(recorded.size(), expected.size()); ++i) {
    if (auto difference = CompareSubnetRows(table, recorded[i], expected[i])) return difference;
  }
  return std::nullopt;
}

struct FaultCase {
  const char* fault;
  DifferenceClass kind;
  const char* what;  ///< starts so
};

class FaultInjectionTest : public ::testing::TestWithParam<FaultCase> {};

TEST_P(FaultInjectionTest, ShowsFirstAtItsPlaceWhateverTheLayout) {
  for (const std::uint64_t seed : {1, 2}) {
    Spec spec = FaultySpec();
    spec.seed = seed;
    const Experiment experiment = MakeExperiment(spec);
    const FaultPlan plan = PlanFor(GetParam().fault, experiment);
    const auto clean = RowsWith(spec, 1, nullptr);
    std::vector<SubnetRow> first_layout;
    for (const std::int64_t stages : {1, 3}) {
      const auto injection = MakeFaultInjection(plan, spec, 1);
      const auto rows = RowsWith(spec, stages, injection.get());
      EXPECT_TRUE(injection->happened());
      const auto difference = FirstDifference(TableOf(experiment), rows, clean);
      ASSERT_TRUE(difference.has_value()) << ToString(plan);
      EXPECT_EQ(difference->seq, plan.place.seq) << ToString(plan);
      EXPECT_EQ(difference->kind, GetParam().kind) << ToString(plan);
      EXPECT_EQ(difference->layer, plan.place.layer) << ToString(plan);
      EXPECT_EQ(difference->phase, plan.place.phase) << ToString(plan);
      EXPECT_EQ(difference->what.rfind(GetParam().what, 0), 0u) << difference->what;
      if (stages == 1) first_layout = rows;
      EXPECT_FALSE(FirstDifference(TableOf(experiment), rows, first_layout)) << ToString(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FaultInjectionTest,
    ::testing::Values(FaultCase{"dropped-dependency", DifferenceClass::kSchedule, "version read"},
                      FaultCase{"stale-read", DifferenceClass::kComputation, "activation"},
                      FaultCase{"bit-flip", DifferenceClass::kComputation, "weights"},
                      FaultCase{"lost-update", DifferenceClass::kComputation, "weights"},
                      FaultCase{"swapped-samples", DifferenceClass::kSampleOrder, "samples"},
                      FaultCase{"dropout-key", DifferenceClass::kComputation, "activation"},
                      FaultCase{"gradient-order", DifferenceClass::kComputation, "gradients"},
                      FaultCase{"stale-optimizer", DifferenceClass::kComputation, "weights"}),
    [](const auto& test) {
      std::string name = test.param.fault;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

const AccessRow& AccessAt(const std::vector<SubnetRow>& rows, const FaultPlan& plan) {
  const auto& accesses = rows[*plan.place.seq].accesses;
  return *std::find_if(accesses.begin(), accesses.end(),
                       [&](const AccessRow& access) { return access.layer == plan.place.layer; });
}

TEST(FaultInjectionPlaceTest, ADroppedDependencySaysWhichVersionItRead) {
  const Spec spec = FaultySpec();
  const FaultPlan plan = PlanFor("dropped-dependency@9", MakeExperiment(spec));
  const auto injection = MakeFaultInjection(plan, spec, 1);
  const AccessRow access = AccessAt(RowsWith(spec, 3, injection.get()), plan);
  EXPECT_LT(access.read_seq, plan.predecessor);
  EXPECT_EQ(access.base_seq, plan.predecessor);
}

TEST(FaultInjectionPlaceTest, ALostUpdateLeavesParametersAndOptimizerAndAdvancesTheVersion) {
  Spec spec = FaultySpec();
  spec.training.subnets = 8;
  const FaultPlan plan = PlanFor("lost-update@7", MakeExperiment(spec));
  const auto injection = MakeFaultInjection(plan, spec, 1);
  const auto rows = RowsWith(spec, 1, injection.get());
  const AccessRow& lost = AccessAt(rows, plan);
  EXPECT_EQ(lost.base_seq, plan.predecessor);
  ASSERT_GE(plan.predecessor, 0);
  FaultPlan before = plan;
  before.place.seq = plan.predecessor;
  EXPECT_EQ(lost.optimizer_state, AccessAt(rows, before).optimizer_state);  // its step too
}

/// Notes the threads that each task computes with.
class ThreadWatch : public StageProbe {
 public:
  explicit ThreadWatch(StageProbe& watched) : watched_(watched) {}
  void BeforeTask(int stage, const Task& task) override {
    watched_.BeforeTask(stage, task);
    const std::lock_guard lock(mutex_);
    threads_[task.seq].insert(at::get_num_threads());
  }
  const std::map<std::int64_t, std::set<int>>& threads() const { return threads_; }

 private:
  StageProbe& watched_;
  std::mutex mutex_;
  std::map<std::int64_t, std::set<int>> threads_;
};

TEST(FaultInjectionPlaceTest, AThreadMoreComputesFromTheSubnetOn) {
  const Spec spec = FaultySpec();
  const FaultPlan plan = PlanFor("thread-count@6", MakeExperiment(spec));
  const auto injection = MakeFaultInjection(plan, spec, 1);
  ThreadWatch watch(*injection);
  const auto rows = RowsWith(spec, 3, &watch);
  EXPECT_TRUE(injection->happened());
  for (const auto& [seq, threads] : watch.threads()) {
    EXPECT_EQ(threads, std::set<int>{seq < 6 ? 1 : 2}) << seq;
  }
  const auto clean = RowsWith(spec, 1, nullptr);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(EncodeSubnetContent(rows[i]), EncodeSubnetContent(clean[i])) << i;
  }
}

TEST(FaultInjectionPlaceTest, AFaultThatChangesNoBitFailsTheRun) {
  Spec spec = FaultySpec();
  spec.training.optimizer.weight_decay = 0.0;
  spec.training.lr = LrSpec{};
  spec.training.lr.base = 1e-300;  // zero, once it is a float32
  const FaultPlan plan = PlanFor("stale-read@8", MakeExperiment(spec));
  const auto injection = MakeFaultInjection(plan, spec, 1);
  TrainingOutcome outcome;
  RowsWith(spec, 2, injection.get(), &outcome);
  EXPECT_EQ(outcome.status, RunStatus::kFailed);
  EXPECT_NE(outcome.detail.find("the injected stale-read changes no bit at subnet 8, layer"),
            std::string::npos)
      << outcome.detail;
}

TEST(FaultInjectionPlaceTest, FaultsOfTheRecordNeedNoProbe) {
  const Spec spec = FaultySpec();
  const Experiment experiment = MakeExperiment(spec);
  for (const char* fault : {"rewritten-row", "deleted-row", "truncated-file"}) {
    EXPECT_EQ(MakeFaultInjection(PlanFor(fault, experiment), spec, 1), nullptr) << fault;
  }
}

}  // namespace
}  // namespace verbatim
