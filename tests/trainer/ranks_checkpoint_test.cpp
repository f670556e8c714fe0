// Checkpoints of runs on ranks: rank 0 writes, of every cut, the files that one process writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/checkpoint_specs.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/ranks_run.h"
#include "trainer/checkpoint_capture.h"
#include "trainer/layer_file.h"

namespace verbatim {
namespace {

struct Layout {
  int ranks;
  std::int64_t stages;
  std::int64_t in_flight;
};

const Layout kLayouts[] = {{2, 2, 4}, {2, 5, 16}, {3, 3, 8}, {4, 7, 12}};

RanksRun TrainWithCheckpoints(const Spec& spec, const Layout& layout, std::int64_t every,
                              std::uint32_t seed, CheckpointSink& sink,
                              const SendFilter& filter = {}) {
  TrainingOptions options;
  options.stages = layout.stages;
  options.in_flight = layout.in_flight;
  options.checkpoints.every = every;
  options.checkpoints.bytes_in_flight_max = 4096;
  RanksSetting setting;
  setting.seed = seed;
  setting.filter = filter;
  setting.prepare = [&](int rank, TrainingOptions& own, Experiment&) {
    if (rank == 0) own.checkpoints.sink = &sink;
    own.has_checkpoints = true;
  };
  return TrainOnRanks(spec, layout.ranks, options, setting);
}

/// Checkpoints of one process.
std::vector<CheckpointRow> ExpectedRows(const Spec& spec, std::int64_t every) {
  MemorySink sink;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options = SequentialOptions();
  options.checkpoints.sink = &sink;
  options.checkpoints.every = every;
  TrainOneRank(experiment, options);
  return sink.rows;
}

void ExpectRows(const std::vector<CheckpointRow>& rows,
                const std::vector<CheckpointRow>& expected) {
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].cut, expected[i].cut);
    for (std::size_t id = 0; id < rows[i].layers.size(); ++id) {
      ASSERT_EQ(rows[i].layers[id].version, expected[i].layers[id].version)
          << "cut " << rows[i].cut << ", layer " << id;
      ASSERT_EQ(rows[i].layers[id].file, expected[i].layers[id].file)
          << "cut " << rows[i].cut << ", layer " << id;
    }
  }
}

TEST(RanksCheckpointTest, EveryCutIsThatOfOneProcess) {
  std::uint32_t seed = 0;
  for (const auto& [name, spec] : CheckpointSpecs(DelayedRanksSpec(4, 2))) {
    for (const std::int64_t every : {1, 5}) {
      const std::vector<CheckpointRow> expected = ExpectedRows(spec, every);
      for (const Layout& layout : kLayouts) {
        SCOPED_TRACE(std::string(name) + ", every " + std::to_string(every) + ", ranks " +
                     std::to_string(layout.ranks) + ", seed " + std::to_string(++seed));
        MemorySink sink;
        const RanksRun run = TrainWithCheckpoints(spec, layout, every, seed, sink);
        EXPECT_EQ(run.outcomes[0].status, RunStatus::kComplete) << run.outcomes[0].detail;
        ExpectRows(sink.rows, expected);
      }
    }
  }
}

TEST(RanksCheckpointTest, NoVersionIsWrittenTwice) {
  MemorySink sink;
  TrainWithCheckpoints(SmallSpec(), {3, 5, 8}, 1, 1, sink);
  EXPECT_EQ(sink.written, std::ssize(sink.files));
}

/// Fails at its n-th call.
class FailingSink : public MemorySink {
 public:
  explicit FailingSink(int calls) : calls_(calls) {}
  Result<Hash256> WriteLayer(const EncodedTensors& tensors) override {
    if (--calls_ < 0) return Failed("the disk is full");
    return MemorySink::WriteLayer(tensors);
  }

 private:
  int calls_;
};

TEST(RanksCheckpointTest, AFailingSinkEndsAllRanks) {
  for (const int calls : {0, 1, 20, 25}) {
    FailingSink sink(calls);
    const RanksRun run = TrainWithCheckpoints(SmallSpec(), {3, 3, 8}, 2, 1, sink);
    EXPECT_EQ(run.outcomes[0].status, RunStatus::kFailed);
    EXPECT_NE(run.outcomes[0].detail.find("the disk is full"), std::string::npos);
  }
}

/// Counts what is written at once.
class CountingSink : public MemorySink {
 public:
  Result<Hash256> WriteLayer(const EncodedTensors& tensors) override {
    auto file = MemorySink::WriteLayer(tensors);
    ++count;
    return file;
  }

  std::atomic<std::int64_t> count{0};
};

TEST(RanksCheckpointTest, NoSubnetIsFinishedWhileTooMuchIsToBeWritten) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  const std::vector<Layer>& layers = experiment.space.layers();
  CountingSink sink;
  CheckpointSettings settings;
  settings.sink = &sink;
  settings.every = 1;
  settings.bytes_in_flight_max = 0;
  CaptureRole role;
  role.holder_of = [&](int layer) { return layers[layer].IsVersioned() ? 1 : -1; };
  CheckpointCapture capture(experiment.space, experiment.spec.training.optimizer, experiment.layers,
                            settings, /*first=*/0, role);
  capture.OnAdmitted(1);
  for (const Layer& layer : layers) {
    if (!layer.IsVersioned()) continue;
    LayerState state = CopyToHost(layer, experiment.layers[layer.id]);
    ASSERT_TRUE(capture.Receive(/*from=*/1, /*cut=*/1, layer, std::move(state)));
  }
  ASSERT_TRUE(capture.OnFinished(0));
  EXPECT_GE(sink.count.load(), std::ranges::count_if(layers, &Layer::IsVersioned));
  ASSERT_TRUE(capture.Close(/*at_end=*/false));
}

TEST(RanksCheckpointTest, ALayerThatIsKeptBackIsNoticed) {
  std::atomic<int> captures{0};
  MemorySink sink;
  const RanksRun run = TrainWithCheckpoints(
      SmallSpec(), {2, 4, 8}, 4, 1, sink, [&](int, int, const Message& message) {
        const bool is_kept = message.kind == MessageKind::kCapture && ++captures == 2;
        return is_kept ? Fate::kSwallowed : Fate::kArrives;
      });
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kFailed);
    EXPECT_NE(outcome.detail.find("a rank has kept a layer"), std::string::npos) << outcome.detail;
  }
}

}  // namespace
}  // namespace verbatim
