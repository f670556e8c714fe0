// Proves that a re-execution gives the run's bits on every layout, that a causal cone alone gives
// the bits of the whole run, and that nothing outside the cone is executed.
#include "replay/reexecute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/plan.h"
#include "tests/trainer/small_run.h"
#include "tests/verify/sample_run.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

/// Keeps everything; stops where told to.
class KeepingSink : public ReexecutionSink {
 public:
  bool OnEnvironment(const std::vector<EnvironmentRow>& rows) override {
    environment = rows;
    return accepts_environment;
  }
  void OnDataset(const Digest&) override { saw_dataset = true; }
  void OnLayers(const std::vector<LayerRow>& rows) override { layers = rows; }
  bool OnSubnet(const SubnetRow& row) override {
    subnets.push_back(row);
    return row.seq != stop_at;
  }
  void OnEvaluations(const std::vector<EvaluationRow>& rows) override { evaluations = rows; }

  bool accepts_environment = true;
  std::int64_t stop_at = -1;
  bool saw_dataset = false;
  std::vector<EnvironmentRow> environment;
  std::vector<LayerRow> layers;
  std::vector<SubnetRow> subnets;
  std::vector<EvaluationRow> evaluations;
};

/// Frozen ends, and many candidates of few blocks: otherwise subnets depend on all before them.
Spec ThinConesSpec() {
  Spec spec = SmallSpec();
  spec.supernet.stem.trainable = false;
  spec.supernet.head.trainable = false;
  BlockSpec block = spec.supernet.blocks.front();
  block.repeat = 2;
  block.candidates.clear();
  for (const OperatorKind kind : {OperatorKind::kConv, OperatorKind::kSeparableConv}) {
    for (const std::int64_t kernel : {1, 3, 5, 7}) {
      block.candidates.emplace_back().kind = kind;
      block.candidates.back().kernel = kernel;
    }
  }
  spec.supernet.blocks = {block};
  return spec;
}

RunInfo RunOf(const Spec& spec) {
  RunInfo run;
  run.spec_json = SpecToJson(spec);
  run.spec_folder = VERBATIM_EXAMPLES;
  run.record_level = "weights";
  run.device = "cpu";
  run.subnets_planned = spec.training.subnets;
  return run;
}

std::vector<std::int64_t> AllOf(const Spec& spec) {
  std::vector<std::int64_t> subnets;
  for (std::int64_t seq = 0; seq < spec.training.subnets; ++seq) subnets.push_back(seq);
  return subnets;
}

std::vector<Hash256> Contents(const std::vector<SubnetRow>& rows) {
  std::vector<Hash256> contents;
  for (const SubnetRow& row : rows) contents.push_back(ContentLeaf(row));
  return contents;
}

class ReexecuteTest : public testing::Test {
 protected:
  explicit ReexecuteTest(Spec spec = SmallSpec()) : spec_(std::move(spec)) {
    Experiment experiment = MakeExperiment(spec_);
    reference_ = TrainedRows(experiment, SequentialOptions());
  }

  Spec spec_;
  RunInfo run_ = RunOf(spec_);
  std::vector<SubnetRow> reference_;
};

TEST_F(ReexecuteTest, GivesTheSequentialReferenceOnEveryLayout) {
  for (const auto& [stages, in_flight] : {std::pair(1, 1), std::pair(1, 4), std::pair(2, 4),
                                          std::pair(3, 8), std::pair(5, 4), std::pair(8, 6)}) {
    KeepingSink sink;
    ReexecuteOptions options;
    options.stages = stages;
    options.in_flight = in_flight;
    options.subnets = AllOf(spec_);
    options.evaluate = true;
    const Status status = Reexecute(run_, options, sink);
    ASSERT_TRUE(status.has_value()) << status.error().message;
    EXPECT_EQ(Contents(sink.subnets), Contents(reference_)) << stages << " stages";
    EXPECT_EQ(sink.evaluations.size(), 2u);
  }
}

class ConeTest : public ReexecuteTest {
 protected:
  ConeTest() : ReexecuteTest(ThinConesSpec()) {}
};

TEST_F(ConeTest, ACausalConeHasTheBitsOfTheWholeRunAndNothingElseIsExecuted) {
  SampleRun recorded;
  recorded.subnets = reference_;
  recorded.layers = DescribeLayers(MakeExperiment(spec_));
  const SampleReader reader(recorded);
  std::size_t executed = 0;
  for (const std::int64_t seq : {3, 9, 15}) {
    const ReplayPlan plan = PlanReplay(reader, 16, {.subnet = seq}).value();
    KeepingSink sink;
    ReexecuteOptions options;
    options.stages = 3;
    options.in_flight = 4;
    options.subnets = plan.subnets;
    ASSERT_TRUE(Reexecute(run_, options, sink).has_value());
    ASSERT_EQ(sink.subnets.size(), plan.subnets.size()) << "subnet " << seq;
    for (const SubnetRow& row : sink.subnets) {
      EXPECT_EQ(ContentLeaf(row), ContentLeaf(reference_[static_cast<std::size_t>(row.seq)]))
          << "subnet " << row.seq << " in the cone of " << seq;
    }
    EXPECT_EQ(sink.subnets.back().seq, seq);
    executed += sink.subnets.size();
  }
  EXPECT_LT(executed, 4u + 10u + 16u);
}

TEST_F(ReexecuteTest, StopsWithTheSinksWord) {
  KeepingSink sink;
  sink.stop_at = 5;
  ReexecuteOptions options;
  options.stages = 2;
  options.in_flight = 4;
  options.subnets = AllOf(spec_);
  options.evaluate = true;
  ASSERT_TRUE(Reexecute(run_, options, sink).has_value());
  EXPECT_EQ(sink.subnets.size(), 6u);
  EXPECT_TRUE(sink.evaluations.empty());
}

TEST_F(ReexecuteTest, LoadsNothingInAnEnvironmentThatIsRefused) {
  KeepingSink sink;
  sink.accepts_environment = false;
  run_.spec_folder = "/nowhere";
  ReexecuteOptions options;
  options.subnets = {0};
  EXPECT_TRUE(Reexecute(run_, options, sink).has_value());
  EXPECT_FALSE(sink.environment.empty());
  EXPECT_FALSE(sink.saw_dataset);
}

TEST_F(ReexecuteTest, NamesTheDataThatIsMissing) {
  KeepingSink sink;
  run_.spec_folder = "/nowhere";
  run_.dataset_digest = MakeDigest(0xab);
  ReexecuteOptions options;
  options.subnets = {0};
  const Status status = Reexecute(run_, options, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(status.error().message, HasSubstr("/nowhere"));
  EXPECT_THAT(status.error().message, HasSubstr(ToShortHex(run_.dataset_digest)));
}

TEST_F(ReexecuteTest, RefusesMoreStagesThanPositions) {
  KeepingSink sink;
  ReexecuteOptions options;
  options.stages = 99;
  options.in_flight = 4;
  options.subnets = {0};
  const Status status = Reexecute(run_, options, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
}

TEST_F(ReexecuteTest, EndsOnRequestWithAnError) {
  KeepingSink sink;
  const std::atomic<bool> stop = true;
  ReexecuteOptions options;
  options.subnets = AllOf(spec_);
  options.stop = &stop;
  const Status status = Reexecute(run_, options, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("stopped on request"));
}

/// Asks for an end once the last subnet is there.
class EndingSink : public KeepingSink {
 public:
  EndingSink(std::int64_t last, std::atomic<bool>& stop) : last_(last), stop_(stop) {}
  bool OnSubnet(const SubnetRow& row) override {
    if (row.seq == last_) stop_ = true;
    return KeepingSink::OnSubnet(row);
  }

 private:
  std::int64_t last_;
  std::atomic<bool>& stop_;
};

TEST_F(ReexecuteTest, EndsTheEvaluationOnRequestToo) {
  std::atomic<bool> stop = false;
  ReexecuteOptions options;
  options.subnets = AllOf(spec_);
  options.evaluate = true;
  options.stop = &stop;
  EndingSink sink(options.subnets.back(), stop);
  const Status status = Reexecute(run_, options, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("stopped on request"));
  EXPECT_EQ(sink.subnets.size(), options.subnets.size());
  EXPECT_TRUE(sink.evaluations.empty());
}

}  // namespace
}  // namespace verbatim
