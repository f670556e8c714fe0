// Where the stages may hold some of the layers only: bits, checkpoints and ends of runs are those
// of runs without such a bound.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "store/checkpoint_files.h"
#include "tests/trainer/checkpoint_specs.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"
#include "trainer/layer_copies.h"
#include "trainer/layer_file.h"

namespace verbatim {
namespace {

std::int64_t LeastOf(const Spec& spec, const TrainingOptions& options) {
  const auto least = LeastDeviceMemoryOf(MakeExperiment(spec), options);
  EXPECT_TRUE(least.has_value());
  return *least;
}

std::int64_t AllBytesOf(const Spec& spec) {
  std::int64_t bytes = 0;
  for (const LayerBytes& layer : BytesOfLayers(MakeExperiment(spec).layers)) {
    bytes += layer.total() + 200 * layer.parameters;  // versions of those with a delay
  }
  return bytes;
}

std::vector<std::pair<const char*, Spec>> Specs() {
  Spec delayed = SmallSpec();
  delayed.training.batch = 13;
  delayed.training.microbatches = 2;
  delayed.supernet.stem.delay = 4;
  delayed.supernet.head.delay = 4;
  delayed.supernet.blocks[2].delay = 2;
  auto specs = CheckpointSpecs(delayed);
  specs.emplace_back("text, tied", SmallTextSpec());
  Spec frozen = SmallTextSpec();
  frozen.supernet.stem.trainable = false;
  frozen.supernet.blocks[1].trainable = false;
  specs.emplace_back("text, frozen", frozen);
  return specs;
}

struct Layout {
  std::int64_t stages;
  std::int64_t in_flight;
  const char* partition = "balanced";
};

TrainingOptions OptionsOf(const Layout& layout) {
  TrainingOptions options;
  options.stages = layout.stages;
  options.in_flight = layout.in_flight;
  options.partition = layout.partition;
  return options;
}

TEST(DeviceMemoryTest, EveryBudgetLeavesTheSequentialRecord) {
  for (const auto& [name, spec] : Specs()) {
    TrainingOptions sequential = SequentialOptions();
    sequential.record_level = RecordLevel::kFull;
    const std::string reference = RecordedContent(spec, sequential);
    for (const Layout& layout : {Layout{1, 4}, Layout{2, 4}, Layout{3, 8}, Layout{3, 8, "equal"}}) {
      TrainingOptions options = OptionsOf(layout);
      options.record_level = RecordLevel::kFull;
      const std::int64_t least = LeastOf(spec, options);
      std::vector<std::int64_t> budgets{least, 2 * least};
      if (layout.stages == 2) budgets.push_back(AllBytesOf(spec));
      for (const std::int64_t budget : budgets) {
        options.device_memory = budget;
        RandomDelays delays(static_cast<std::uint32_t>(layout.stages * 100 + layout.in_flight));
        options.probe = &delays;
        EXPECT_EQ(RecordedContent(spec, options), reference)
            << name << ": " << layout.stages << " stages, " << layout.in_flight
            << " in flight, partition " << layout.partition << ", " << budget << " bytes, least "
            << least;
      }
    }
  }
}

TEST(DeviceMemoryTest, TheSequentialReferenceItselfRunsInLittleMemory) {
  const Spec spec = SmallSpec();
  TrainingOptions options = SequentialOptions();
  options.device_memory = LeastOf(spec, options);
  EXPECT_EQ(RecordedContent(spec, options), RecordedContent(spec, SequentialOptions()));
}

TEST(DeviceMemoryTest, LayersAreAtHomeAfterARun) {
  for (const auto& [name, spec] : Specs()) {
    Experiment reference = MakeExperiment(spec);
    TrainedRows(reference, SequentialOptions());
    Experiment experiment = MakeExperiment(spec);
    std::vector<const void*> homes;
    for (const LayerState& state : experiment.layers) {
      homes.push_back(state.parameters.empty() ? nullptr : state.parameters.front().data_ptr());
    }
    TrainingOptions options = OptionsOf({3, 8});
    options.device_memory = LeastOf(spec, options) * 2;
    TrainingOutcome outcome;
    TrainedRows(experiment, options, &outcome);
    ASSERT_TRUE(outcome.layers.has_value());
    EXPECT_GT(outcome.layers->bytes_loaded, 0);
    EXPECT_GT(outcome.layers->bytes_written, 0);
    for (const std::int64_t peak : outcome.layers->peak_bytes) {
      EXPECT_LE(peak, *options.device_memory) << name;
    }
    const auto expected = DescribeLayers(reference);
    const auto left = DescribeLayers(experiment);
    for (const Layer& layer : experiment.space.layers()) {
      const LayerState& state = experiment.layers[layer.id];
      EXPECT_EQ(left[layer.id], expected[layer.id]) << name << ", " << layer.name;
      if (layer.delay > 0 || state.parameters.empty()) continue;
      EXPECT_EQ(state.parameters.front().data_ptr(), homes[layer.id]) << name << ", " << layer.name;
      EXPECT_EQ(state.parameters.front().requires_grad(), layer.trainable) << layer.name;
    }
  }
}

TEST(DeviceMemoryTest, RunsWithAndWithoutABudgetGoOnFromEachOther) {
  Spec spec = SmallSpec();
  spec.training.lr = LrSpec{.base = 0.05};
  Experiment whole = MakeExperiment(spec);
  const auto expected = TrainedRows(whole, SequentialOptions());
  Experiment experiment = MakeExperiment(spec);
  std::vector<SubnetRow> rows;
  for (std::int64_t first = 0; first < spec.training.subnets; first += 4) {
    experiment.spec.training.subnets = first + 4;
    TrainingOptions options = OptionsOf({2, 4});
    options.first = first;
    if (first % 8 == 0) options.device_memory = LeastOf(spec, options);
    for (SubnetRow& row : TrainedRows(experiment, options)) rows.push_back(std::move(row));
  }
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(EncodeSubnetContent(rows[i]), EncodeSubnetContent(expected[i])) << i;
  }
}

MemorySink CheckpointsOf(const Spec& spec, TrainingOptions options) {
  MemorySink sink;
  Experiment experiment = MakeExperiment(spec);
  options.checkpoints.sink = &sink;
  options.checkpoints.every = 1;
  options.checkpoints.bytes_in_flight_max = 4096;
  const auto outcome = Train(experiment, options);
  EXPECT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kComplete) << outcome->detail;
  return sink;
}

TEST(DeviceMemoryTest, CheckpointsAreThoseOfARunWithoutABudget) {
  for (const auto& [name, spec] : Specs()) {
    const MemorySink expected = CheckpointsOf(spec, OptionsOf({1, 1}));
    for (const Layout& layout : {Layout{1, 4}, Layout{3, 8}, Layout{2, 16, "equal"}}) {
      TrainingOptions options = OptionsOf(layout);
      const std::int64_t least = LeastOf(spec, options);
      for (const std::int64_t budget : {least, 2 * least}) {
        options.device_memory = budget;
        RandomDelays delays(static_cast<std::uint32_t>(budget));
        options.probe = &delays;
        const MemorySink sink = CheckpointsOf(spec, options);
        ASSERT_EQ(sink.rows.size(), expected.rows.size()) << name;
        for (std::size_t i = 0; i < sink.rows.size(); ++i) {
          EXPECT_EQ(sink.rows[i].cut, expected.rows[i].cut);
          EXPECT_EQ(sink.rows[i].layers, expected.rows[i].layers)
              << name << ", cut " << sink.rows[i].cut << ", " << layout.stages << " stages";
        }
      }
    }
  }
}

TEST(DeviceMemoryTest, AStopRequestLeavesAPrefixAndItsCheckpoint) {
  const Spec spec = SmallSpec();
  const MemorySink expected = CheckpointsOf(spec, OptionsOf({1, 1}));
  Experiment experiment = MakeExperiment(spec);
  MemorySink sink;
  std::atomic<bool> stop = false;
  TrainingOptions options = OptionsOf({3, 8});
  options.device_memory = LeastOf(spec, options);
  options.checkpoints.sink = &sink;
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished >= 5; };
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kInterrupted);
  ASSERT_EQ(sink.rows.size(), 1u);
  EXPECT_EQ(sink.rows[0].layers,
            expected.rows[static_cast<std::size_t>(outcome->subnets - 1)].layers);
}

/// Throws at the n-th transfer of one kind.
class FailingCopies : public StageProbe {
 public:
  FailingCopies(Transfer::Kind kind, int transfers) : kind_(kind), left_(transfers) {}

  void BeforeTransfer(const Transfer& transfer) override {
    if (transfer.kind == kind_ && --left_ < 0) throw std::runtime_error("out of memory\nat 0x1");
  }

 private:
  const Transfer::Kind kind_;
  std::atomic<int> left_;
};

TEST(DeviceMemoryTest, AnExceptionInACopyThreadEndsTheRun) {
  for (const Transfer::Kind kind : {Transfer::Kind::kLoad, Transfer::Kind::kWriteBack}) {
    for (const std::int64_t stages : {1, 3}) {
      for (const int transfers : {0, 1, 7, 20, 30}) {
        Experiment experiment = MakeExperiment(SmallSpec());
        TrainingOptions options = OptionsOf({stages, 4});
        options.device_memory = LeastOf(SmallSpec(), options);
        FailingCopies probe(kind, transfers);
        options.probe = &probe;
        const auto outcome = Train(experiment, options);
        ASSERT_TRUE(outcome.has_value());
        EXPECT_EQ(outcome->status, RunStatus::kFailed) << transfers;
        EXPECT_NE(outcome->detail.find("moving layers"), std::string::npos) << outcome->detail;
        EXPECT_NE(outcome->detail.find("out of memory"), std::string::npos) << outcome->detail;
        EXPECT_EQ(outcome->detail.find("0x1"), std::string::npos) << outcome->detail;
      }
    }
  }
}

TEST(DeviceMemoryTest, AThrowInAStageEndsTheCopyThreadsToo) {
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options = OptionsOf({3, 8});
  options.device_memory = LeastOf(SmallSpec(), options);
  class OutOfMemory : public StageProbe {
    void BeforeTask(int stage, const Task& task) override {
      if (stage == 1 && task.seq == 4) throw std::runtime_error("no memory");
    }
  } probe;
  options.probe = &probe;
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kFailed);
  EXPECT_EQ(outcome->detail, "stage 1: no memory");
}

/// Sums up what is alive of the parameters that subnets have read, whoever keeps them.
class MemoryWatch : public StageProbe {
 public:
  void OnRead(std::int64_t, const Layer& layer, LayerRead& read) override {
    if (layer.delay > 0) return;
    const std::lock_guard lock(mutex_);
    for (const at::Tensor& parameter : read.parameters) {
      seen_.insert_or_assign(parameter.storage().unsafeGetStorageImpl(),
                             std::pair(parameter.storage().getWeakStorageImpl(),
                                       static_cast<std::int64_t>(parameter.nbytes())));
    }
  }
  void BeforeTransfer(const Transfer& transfer) override {
    if (transfer.kind != Transfer::Kind::kLoad) return;
    const std::lock_guard lock(mutex_);
    std::int64_t alive = 0;
    for (const auto& [address, storage] : seen_) {
      if (!storage.first.expired()) alive += storage.second;
    }
    most_ = std::max(most_, alive);
  }
  std::int64_t most() const { return most_; }

 private:
  std::mutex mutex_;
  std::map<const void*, std::pair<c10::weak_intrusive_ptr<c10::StorageImpl>, std::int64_t>> seen_;
  std::int64_t most_ = 0;
};

TEST(DeviceMemoryTest, WhatIsGivenUpIsFreed) {
  for (Spec spec : {SmallSpec(), SmallTextSpec()}) {
    spec.training.subnets = 40;
    Experiment experiment = MakeExperiment(spec);
    TrainingOptions options = OptionsOf({1, 4});
    options.device_memory = LeastOf(spec, options);
    MemoryWatch watch;
    options.probe = &watch;
    const auto outcome = Train(experiment, options);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->status, RunStatus::kComplete) << outcome->detail;
    EXPECT_GT(watch.most(), 0);
    EXPECT_LE(watch.most(), *options.device_memory);
  }
}

TEST(DeviceMemoryTest, TheLeastIsExact) {
  for (const auto& [name, spec] : Specs()) {
    const Experiment experiment = MakeExperiment(spec);
    TrainingOptions options = OptionsOf({3, 4});
    const std::int64_t least = LeastOf(spec, options);
    options.device_memory = least;
    EXPECT_TRUE(CheckTraining(experiment, options).has_value()) << name;
    options.device_memory = least - 1;
    const Status checked = CheckTraining(experiment, options);
    ASSERT_FALSE(checked.has_value()) << name;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
    EXPECT_NE(checked.error().hint.find("--device-memory " + std::to_string(least)),
              std::string::npos)
        << checked.error().hint;
  }
}

TEST(DeviceMemoryTest, OtherPoliciesAreRefused) {
  const Experiment experiment = MakeExperiment(SmallSpec());
  for (const char* policy : {"gpipe", "1f1b", "asynchronous"}) {
    TrainingOptions options = OptionsOf({2, 4});
    options.policy = policy;
    options.device_memory = std::int64_t{1} << 30;
    const Status checked = CheckTraining(experiment, options);
    ASSERT_FALSE(checked.has_value()) << policy;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace verbatim
