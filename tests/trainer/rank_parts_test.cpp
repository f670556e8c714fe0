// Proves that every rank other than 0 hands over its part of each subnet once, that the parts are
// what rank 0 records, and that a part which cannot be kept fails the run everywhere.
#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <mutex>

#include "recorder/rank_report.h"
#include "tests/trainer/ranks_run.h"
#include "verify/layer_table.h"
#include "verify/part_difference.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

class CollectedParts : public PartSink {
 public:
  explicit CollectedParts(std::int64_t fail_at = -1) : fail_at_(fail_at) {}

  Status AddPart(std::int64_t seq, std::string report) override {
    const std::lock_guard lock(mutex_);
    if (seq == fail_at_) return Failed("cannot write run.db.rank-1: No space left on device");
    EXPECT_TRUE(parts_.emplace(seq, std::move(report)).second) << seq;
    return {};
  }
  Status WaitForRoom() override { return {}; }

  const std::map<std::int64_t, std::string>& parts() const { return parts_; }

 private:
  const std::int64_t fail_at_;
  std::mutex mutex_;
  std::map<std::int64_t, std::string> parts_;
};

/// A run on three ranks, each of which hands its parts to its own sink.
RanksRun TrainInto(const Spec& spec, std::deque<CollectedParts>& sinks, RecordLevel level) {
  TrainingOptions options;
  options.stages = 6;
  options.in_flight = 8;
  options.record_level = level;
  RanksSetting setting{.seed = 4};
  setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
    if (rank > 0) own.parts = &sinks[static_cast<std::size_t>(rank)];
  };
  return TrainOnRanks(spec, 3, options, setting);
}

LayerTable TableOf(const Spec& spec) {
  const Experiment experiment = MakeExperiment(spec);
  std::vector<LayerRow> rows;
  for (const Layer& layer : experiment.space.layers()) {
    rows.push_back({layer.id,
                    layer.name,
                    layer.position,
                    layer.candidate,
                    Describe(layer.op),
                    layer.IsVersioned(),
                    {}});
  }
  auto table = LayerTable::Build(std::move(rows));
  VERBATIM_CHECK(table.has_value(), "{}", table.error().message);
  return *std::move(table);
}

TEST(RankPartsTest, PartsAreWhatRankZeroRecords) {
  const Spec spec = SmallSpec();
  std::deque<CollectedParts> sinks(3);
  const RanksRun run = TrainInto(spec, sinks, RecordLevel::kFull);
  ASSERT_EQ(run.outcomes[0].status, RunStatus::kComplete) << run.outcomes[0].detail;
  const LayerTable table = TableOf(spec);
  EXPECT_TRUE(sinks[0].parts().empty());
  for (const std::size_t rank : {1u, 2u}) {
    ASSERT_EQ(std::ssize(sinks[rank].parts()), spec.training.subnets);
    for (const SubnetRow& row : run.rows) {
      auto report = DecodeReport(row.seq, sinks[rank].parts().at(row.seq));
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_FALSE(report->activity.empty());
      EXPECT_EQ(report->loss.has_value(), rank == 2);
      const Part part{row.seq, *std::move(report)};
      const auto difference = ComparePart(table, row, part, /*same_execution=*/true);
      EXPECT_FALSE(difference) << "rank " << rank << ", subnet " << row.seq << ": "
                               << difference->what;
    }
  }
}

TEST(RankPartsTest, APartThatCannotBeKeptFailsTheRunOnAllRanks) {
  std::deque<CollectedParts> sinks;
  for (const std::int64_t fail_at : {-1, 5, -1}) sinks.emplace_back(fail_at);
  const RanksRun run = TrainInto(SmallSpec(), sinks, RecordLevel::kWeights);
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_THAT(outcome.detail, HasSubstr("rank 1"));
    EXPECT_THAT(outcome.detail, HasSubstr("No space left on device"));
  }
  for (const SubnetRow& row : run.rows) EXPECT_NE(row.seq, 5) << "recorded, but not kept";
}

}  // namespace
}  // namespace verbatim
