// Proves that a replay's record holds what was executed, ends as it should, and fails aloud.
#include "replay/recording_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/reader.h"
#include "tests/temporary_folder.h"
#include "tests/verify/sample_run.h"

namespace verbatim {
namespace {

/// Notes what arrives and stops after a number of subnets.
class CountingSink : public ReexecutionSink {
 public:
  explicit CountingSink(std::int64_t wanted) : wanted_(wanted) {}
  bool OnEnvironment(const std::vector<EnvironmentRow>&) override { return true; }
  void OnDataset(const Digest&) override {}
  void OnLayers(const std::vector<LayerRow>&) override {}
  bool OnSubnet(const SubnetRow&) override { return ++subnets < wanted_; }
  void OnEvaluations(const std::vector<EvaluationRow>&) override { evaluated = true; }

  std::int64_t subnets = 0;
  bool evaluated = false;

 private:
  std::int64_t wanted_;
};

void Play(const SampleRun& sample, ReexecutionSink& sink) {
  ASSERT_TRUE(sink.OnEnvironment(sample.environment));
  sink.OnDataset(MakeDigest(55));
  sink.OnLayers(sample.layers);
  for (const SubnetRow& subnet : sample.subnets) {
    if (!sink.OnSubnet(subnet)) return;
  }
  sink.OnEvaluations(sample.evaluations);
}

TEST(RecordingSink, WritesACompleteRecord) {
  const test::TemporaryFolder folder;
  const SampleRun sample = MakeSampleRun();
  CountingSink next(100);
  RecordingSink sink(folder / "replay.db", sample.run, false, next);
  Play(sample, sink);
  ASSERT_TRUE(sink.Close("stopped").has_value());
  EXPECT_EQ(next.subnets, kSampleSubnets);
  EXPECT_TRUE(next.evaluated);
  const auto reader = RecordReader::Open(folder / "replay.db");
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kComplete);
  EXPECT_EQ((*reader)->Run()->dataset_digest, MakeDigest(55));
  EXPECT_EQ((*reader)->Evaluations()->size(), 2u);
  EXPECT_EQ(ContentDigest(**reader).value(), ContentDigest(SampleReader(sample)).value());
}

TEST(RecordingSink, EndsAPartAsInterrupted) {
  const test::TemporaryFolder folder;
  const SampleRun sample = MakeSampleRun();
  CountingSink next(5);
  RecordingSink sink(folder / "replay.db", sample.run, false, next);
  Play(sample, sink);
  ASSERT_TRUE(sink.Close("stopped at a difference").has_value());
  const auto reader = RecordReader::Open(folder / "replay.db");
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ((*reader)->SubnetCount().value(), 5);
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kInterrupted);
  EXPECT_EQ((*reader)->Run()->status_detail, "stopped at a difference after 5 of 12 subnets");
}

TEST(RecordingSink, IsNotCompleteWithoutTheEvaluations) {
  const test::TemporaryFolder folder;
  const SampleRun sample = MakeSampleRun();
  CountingSink next(kSampleSubnets);
  RecordingSink sink(folder / "replay.db", sample.run, false, next);
  Play(sample, sink);
  ASSERT_FALSE(next.evaluated);
  ASSERT_TRUE(sink.Close("stopped at a difference").has_value());
  const auto run = (*RecordReader::Open(folder / "replay.db"))->Run();
  EXPECT_EQ(run->status, RunStatus::kInterrupted);
  EXPECT_EQ(run->status_detail,
            "stopped at a difference after 12 of 12 subnets, before the evaluation");
}

TEST(RecordingSink, StopsWhereTheRecordCannotBeWritten) {
  const test::TemporaryFolder folder;
  const SampleRun sample = MakeSampleRun();
  CountingSink next(100);
  RecordingSink sink(folder / "none" / "replay.db", sample.run, false, next);
  Play(sample, sink);
  EXPECT_EQ(next.subnets, 1);
  EXPECT_FALSE(sink.Close("stopped").has_value());
}

}  // namespace
}  // namespace verbatim
