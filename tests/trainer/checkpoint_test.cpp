// Checkpoints taken while subnets are in flight are what the sequential reference leaves when it
// stops there, bit for bit, and training goes on from them as if it had never stopped.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/durable_file.h"
#include "store/checkpoint_files.h"
#include "store/layer_metadata.h"
#include "tests/trainer/checkpoint_specs.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"
#include "trainer/checkpoint_loader.h"
#include "trainer/layer_file.h"

namespace verbatim {
namespace {

/// The layers' files after the subnets below `cut`, of the sequential reference.
std::vector<std::string> SequentialFiles(const Spec& spec, std::int64_t cut) {
  Experiment experiment = MakeExperiment(spec);
  std::atomic<bool> stop{false};
  TrainingOptions options = SequentialOptions();
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished == cut; };
  EXPECT_TRUE(Train(experiment, options).has_value());
  std::vector<std::string> files;
  for (const Layer& layer : experiment.space.layers()) {
    const StoredTensors stored =
        DescribeLayerState(layer, spec.training.optimizer, experiment.layers[layer.id]);
    const EncodedTensors encoded = EncodeSafetensors(stored);
    std::string bytes;
    for (const std::string_view piece : encoded.Pieces()) bytes += piece;
    files.push_back(std::move(bytes));
  }
  return files;
}

struct Layout {
  std::int64_t stages;
  std::int64_t in_flight;
  const char* partition = "balanced";
  const char* policy = "causal";
};

/// Trains under the layout with a checkpoint at every subnet.
MemorySink CheckpointsOf(const Spec& spec, const Layout& layout, std::int64_t every = 1) {
  MemorySink sink;
  Experiment experiment = MakeExperiment(spec);
  TrainingOptions options;
  options.stages = layout.stages;
  options.in_flight = layout.in_flight;
  options.partition = layout.partition;
  options.policy = layout.policy;
  options.checkpoints.sink = &sink;
  options.checkpoints.every = every;
  options.checkpoints.bytes_in_flight_max = 4096;
  RandomDelays delays(static_cast<std::uint32_t>(layout.stages * 100 + layout.in_flight));
  options.probe = &delays;
  const auto outcome = Train(experiment, options);
  EXPECT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kComplete) << outcome->detail;
  return sink;
}

Spec DelayedSpec() {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  spec.supernet.stem.delay = 4;
  spec.supernet.head.delay = 4;
  spec.supernet.blocks[2].delay = 2;
  return spec;
}

TEST(CheckpointTest, EveryCutIsWhatTheSequentialReferenceLeaves) {
  for (const auto& [name, spec] : CheckpointSpecs(DelayedSpec())) {
    std::map<std::int64_t, std::vector<std::string>> expected;
    for (std::int64_t cut = 1; cut <= spec.training.subnets; ++cut) {
      expected[cut] = SequentialFiles(spec, cut);
    }
    for (const Layout& layout :
         {Layout{1, 4}, Layout{3, 8}, Layout{6, 16, "equal"}, Layout{2, 4, "balanced", "1f1b"}}) {
      const MemorySink sink = CheckpointsOf(spec, layout);
      ASSERT_EQ(std::ssize(sink.rows), spec.training.subnets) << name;
      for (const CheckpointRow& row : sink.rows) {
        for (std::size_t id = 0; id < row.layers.size(); ++id) {
          ASSERT_EQ(sink.files.at(row.layers[id].file), expected[row.cut][id])
              << name << ", cut " << row.cut << ", layer " << id << ", " << layout.stages
              << " stages";
        }
      }
    }
  }
}

TEST(CheckpointTest, LayersThatDidNotChangeKeepTheirFiles) {
  const MemorySink sink = CheckpointsOf(SmallSpec(), {3, 8});
  // No version is written twice.
  EXPECT_EQ(sink.written, std::ssize(sink.files));
  std::set<std::pair<std::size_t, std::int64_t>> versions;
  for (const CheckpointRow& row : sink.rows) {
    for (std::size_t id = 0; id < row.layers.size(); ++id) {
      versions.insert({id, row.layers[id].version});
    }
  }
  EXPECT_EQ(std::ssize(versions), sink.written);
}

TEST(CheckpointTest, CutsAreMultiplesAndTheEnd) {
  std::vector<std::int64_t> cuts;
  for (const CheckpointRow& row : CheckpointsOf(SmallSpec(), {2, 4}, 6).rows) {
    cuts.push_back(row.cut);
  }
  EXPECT_EQ(cuts, (std::vector<std::int64_t>{6, 12, 16}));
  const MemorySink at_end = CheckpointsOf(SmallSpec(), {2, 4}, 0);
  ASSERT_EQ(at_end.rows.size(), 1u);
  EXPECT_EQ(at_end.rows[0].cut, 16);
}

TEST(CheckpointTest, CheckpointsChangeNoBitOfARun) {
  Spec spec = DelayedSpec();
  MemorySink sink;
  TrainingOptions options;
  options.stages = 3;
  options.in_flight = 8;
  options.checkpoints.sink = &sink;
  options.checkpoints.every = 2;
  EXPECT_EQ(RecordedContent(spec, options), RecordedContent(spec, SequentialOptions()));
  EXPECT_EQ(sink.rows.size(), 8u);
}

TEST(CheckpointTest, AStoppedRunLeavesOneOfItsEnd) {
  MemorySink sink;
  Experiment experiment = MakeExperiment(SmallSpec());
  std::atomic<bool> stop{false};
  TrainingOptions options;
  options.stages = 2;
  options.checkpoints.sink = &sink;
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished >= 5; };
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kInterrupted);
  ASSERT_EQ(sink.rows.size(), 1u);
  EXPECT_EQ(sink.rows[0].cut, outcome->subnets);
}

/// Fails at its n-th call.
class FailingSink : public MemorySink {
 public:
  explicit FailingSink(int calls) : calls_(calls) {}
  Result<Hash256> WriteLayer(const EncodedTensors& tensors) override {
    if (--calls_ < 0) return Failed("the disk is full");
    return MemorySink::WriteLayer(tensors);
  }
  Status WriteCheckpoint(CheckpointRow checkpoint) override {
    if (--calls_ < 0) return Failed("the disk is full");
    return MemorySink::WriteCheckpoint(std::move(checkpoint));
  }

 private:
  int calls_;
};

TEST(CheckpointTest, AFailingSinkStopsTheRunWithItsError) {
  for (const int calls : {0, 1, 20, 25, 40, 60}) {
    FailingSink sink(calls);
    Experiment experiment = MakeExperiment(SmallSpec());
    TrainingOptions options;
    options.stages = 3;
    options.checkpoints.sink = &sink;
    options.checkpoints.every = 2;
    options.checkpoints.bytes_in_flight_max = 1;
    const auto outcome = Train(experiment, options);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->status, RunStatus::kFailed) << calls;
    EXPECT_EQ(outcome->detail, "the disk is full") << calls;
  }
}

TEST(CheckpointTest, TheAsynchronousPolicyHasNone) {
  MemorySink sink;
  const Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.policy = "asynchronous";
  options.checkpoints.sink = &sink;
  const Status checked = CheckTraining(experiment, options);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
}

/// Checkpoints of a run in a folder, to be loaded from.
class LoadTest : public ::testing::Test {
 protected:
  /// Writes the files of all checkpoints.
  void Write(const MemorySink& sink) {
    for (const auto& [file, bytes] : sink.files) {
      const std::vector<std::string_view> pieces{bytes};
      ASSERT_TRUE(WriteDurably(folder_ / CheckpointFileName(file), pieces).has_value());
    }
  }
  const test::TemporaryFolder folder_;
};

std::vector<std::string> ContentsOf(const std::vector<SubnetRow>& rows) {
  std::vector<std::string> contents;
  for (const SubnetRow& row : rows) contents.push_back(EncodeSubnetContent(row));
  return contents;
}

TEST_F(LoadTest, TrainingOnGivesTheSubnetsOfTheUninterruptedRun) {
  for (const auto& [name, spec] : CheckpointSpecs(DelayedSpec())) {
    Experiment whole = MakeExperiment(spec);
    const std::vector<std::string> expected = ContentsOf(TrainedRows(whole, SequentialOptions()));
    const MemorySink sink = CheckpointsOf(spec, {3, 8});
    Write(sink);
    for (const CheckpointRow& row : sink.rows) {
      Experiment experiment = MakeExperiment(spec);
      const Status loaded = LoadCheckpoint(folder_.path(), row, experiment);
      ASSERT_TRUE(loaded.has_value()) << name << ": " << loaded.error().message;
      TrainingOptions options;
      options.first = row.cut;
      options.stages = 1 + row.cut % 5;
      options.in_flight = 8;
      MemorySink later;
      options.checkpoints = {.sink = &later, .every = 4, .previous = row};
      TrainingOutcome outcome;
      const auto contents = ContentsOf(TrainedRows(experiment, options, &outcome));
      EXPECT_EQ(outcome.status, RunStatus::kComplete) << outcome.detail;
      EXPECT_EQ(outcome.subnets, spec.training.subnets);
      EXPECT_EQ(contents, std::vector<std::string>(expected.begin() + row.cut, expected.end()))
          << name << ", from " << row.cut;
      if (row.cut == spec.training.subnets) {
        EXPECT_TRUE(later.rows.empty());
      } else {
        EXPECT_EQ(later.rows.back().layers, sink.rows.back().layers) << name;
      }
    }
  }
}

TEST_F(LoadTest, ALostOrDamagedFileChangesNothing) {
  const Spec spec = DelayedSpec();
  const MemorySink sink = CheckpointsOf(spec, {2, 4});
  Write(sink);
  const CheckpointRow row = sink.rows[9];
  for (const CheckpointLayer& layer : row.layers) {
    const std::filesystem::path path = folder_ / CheckpointFileName(layer.file);
    std::filesystem::rename(path, folder_ / "kept");
    Experiment experiment = MakeExperiment(spec);
    const Status loaded = LoadCheckpoint(folder_.path(), row, experiment);
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(loaded.error().message.find(path.string()), std::string::npos);
    for (const LayerState& state : experiment.layers) EXPECT_EQ(state.version, -1);
    std::filesystem::rename(folder_ / "kept", path);
  }
}

TEST_F(LoadTest, AFileOfAnotherLayerVersionOrSpecIsRefused) {
  const Spec spec = SmallSpec();
  const MemorySink sink = CheckpointsOf(spec, {2, 4});
  Write(sink);
  Experiment experiment = MakeExperiment(spec);
  const auto refused = [&](const CheckpointRow& row, Experiment& into) {
    const Status loaded = LoadCheckpoint(folder_.path(), row, into);
    return !loaded && loaded.error().kind == ErrorKind::kBadInput;
  };
  CheckpointRow other_layer = sink.rows[7];
  std::swap(other_layer.layers[1].file, other_layer.layers[2].file);
  EXPECT_TRUE(refused(other_layer, experiment));
  CheckpointRow other_version = sink.rows[7];
  other_version.layers[0].file = sink.rows[6].layers[0].file;
  EXPECT_TRUE(refused(other_version, experiment));
  CheckpointRow from_the_future = sink.rows[7];
  from_the_future.layers[0].version = from_the_future.cut;
  EXPECT_TRUE(refused(from_the_future, experiment));
  CheckpointRow too_few = sink.rows[7];
  too_few.layers.pop_back();
  EXPECT_TRUE(refused(too_few, experiment));
  Spec adam = spec;
  adam.training.optimizer.kind = OptimizerKind::kAdam;
  Experiment other_spec = MakeExperiment(adam);
  EXPECT_TRUE(refused(sink.rows[7], other_spec));
  Spec wider = spec;
  wider.supernet.stem.channels = 8;
  Experiment other_shapes = MakeExperiment(wider);
  EXPECT_TRUE(refused(sink.rows[7], other_shapes));
}

}  // namespace
}  // namespace verbatim
