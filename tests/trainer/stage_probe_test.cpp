// A probe sees every read, forward, gradient and update once; one that changes nothing, or adds
// gradients as the stage would, changes no bit.
#include "trainer/stage_probe.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <tuple>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

Spec ProbedSpec() {
  Spec spec = SmallSpec();
  spec.training.subnets = 8;
  spec.training.microbatches = 3;
  return spec;
}

TrainingOptions FullOnStages(std::int64_t stages, StageProbe* probe) {
  TrainingOptions options;
  options.stages = stages;
  options.record_level = RecordLevel::kFull;
  options.probe = probe;
  return options;
}

/// Counts calls by (method, seq, layer).
class CountingProbe : public StageProbe {
 public:
  int Count(const char* method, std::int64_t seq, int layer) const {
    const auto found = counts_.find({method, seq, layer});
    return found == counts_.end() ? 0 : found->second;
  }
  std::int64_t version_read(std::int64_t seq, int layer) const {
    return versions_.at({seq, layer});
  }

  void OnSamples(std::int64_t seq, std::vector<std::uint32_t>& samples) override {
    Add("samples", seq, static_cast<int>(samples.size()));
  }
  void BeforeTask(int stage, const Task& task) override { Add("task", task.seq, stage); }
  void OnRead(std::int64_t seq, const Layer& layer, LayerRead& read) override {
    Add("read", seq, layer.id);
    const std::lock_guard lock(mutex_);
    versions_[{seq, layer.id}] = read.version;
  }
  void OnDropoutKey(std::int64_t seq, const Layer& layer, RandomKey& key) override {
    EXPECT_EQ(key.c, static_cast<std::uint32_t>(seq));
    EXPECT_EQ(key.b, static_cast<std::uint32_t>(layer.id));
    Add("dropout", seq, layer.id);
  }
  void OnForward(std::int64_t seq, std::int32_t, const Layer& layer, const at::Tensor&) override {
    Add("forward", seq, layer.id);
  }
  bool OnGradients(std::int64_t seq, std::int32_t, const Layer& layer, std::span<at::Tensor> sum,
                   std::span<const at::Tensor> gradients) override {
    EXPECT_EQ(sum.size(), layer.parameters.size());
    EXPECT_EQ(gradients.size(), layer.parameters.size());
    Add("gradients", seq, layer.id);
    return false;
  }
  void BeforeUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    EXPECT_LT(state.version, seq);
    Add("before", seq, layer.id);
  }
  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                   LayerState& state) override {
    EXPECT_EQ(state.version, seq);
    Add("after", seq, layer.id);
  }

 private:
  void Add(const char* method, std::int64_t seq, int layer) {
    const std::lock_guard lock(mutex_);
    ++counts_[{method, seq, layer}];
  }

  std::mutex mutex_;
  std::map<std::tuple<std::string, std::int64_t, int>, int> counts_;
  std::map<std::pair<std::int64_t, int>, std::int64_t> versions_;
};

TEST(StageProbeTest, SeesEveryStepOfEverySubnet) {
  CountingProbe probe;
  Experiment experiment = MakeExperiment(ProbedSpec());
  for (const SubnetRow& row : TrainedRows(experiment, FullOnStages(3, &probe))) {
    EXPECT_EQ(probe.Count("samples", row.seq, 12), 1);
    for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(probe.Count("task", row.seq, stage), 7);
    for (int position = 0; position < experiment.space.positions(); ++position) {
      const int layer = experiment.space.LayerAt(position, row.choices).id;
      EXPECT_EQ(probe.Count("read", row.seq, layer), 1);
      EXPECT_EQ(probe.Count("dropout", row.seq, layer), 3);
      EXPECT_EQ(probe.Count("forward", row.seq, layer), 3);
    }
    for (const AccessRow& access : row.accesses) {
      EXPECT_EQ(probe.version_read(row.seq, access.layer), access.read_seq);
      EXPECT_EQ(probe.Count("gradients", row.seq, access.layer), 3);
      EXPECT_EQ(probe.Count("before", row.seq, access.layer), 1);
      EXPECT_EQ(probe.Count("after", row.seq, access.layer), 1);
    }
  }
}

/// Adds gradients as a stage does.
class AccumulatingProbe : public StageProbe {
 public:
  bool OnGradients(std::int64_t, std::int32_t microbatch, const Layer&, std::span<at::Tensor> sum,
                   std::span<const at::Tensor> gradients) override {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      EXPECT_EQ(sum[i].defined(), microbatch > 0);
      sum[i] = microbatch == 0 ? gradients[i].contiguous() : sum[i].add(gradients[i]);
    }
    return true;
  }
};

TEST(StageProbeTest, AProbeThatChangesNothingChangesNoBit) {
  const Spec spec = ProbedSpec();
  const std::string without = RecordedContent(spec, FullOnStages(1, nullptr));
  for (const std::int64_t stages : {1, 3}) {
    StageProbe idle;
    EXPECT_EQ(RecordedContent(spec, FullOnStages(stages, &idle)), without) << stages << " stages";
    AccumulatingProbe accumulating;
    EXPECT_EQ(RecordedContent(spec, FullOnStages(stages, &accumulating)), without)
        << stages << " stages, accumulating";
  }
}

}  // namespace
}  // namespace verbatim
