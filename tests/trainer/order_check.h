// Runs on devices that compute behind their hosts, watched.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tests/trainer/fake_device.h"
#include "tests/trainer/memory_sink.h"
#include "tests/trainer/random_delays.h"
#include "tests/trainer/ranks_run.h"
#include "tests/trainer/small_run.h"

namespace verbatim {

/// Compares what stages and copy threads use with what was enqueued before, whatever marks say.
class OrderCheck : public StageProbe {
 public:
  explicit OrderCheck(std::uint32_t seed) : delays_(seed) {}

  std::int64_t violations() const { return violations_; }
  std::int64_t crossings() const { return crossings_; }

  /// Reads of parameters whose memory a stage's stream has not asked to keep.
  std::int64_t unkept() const { return unkept_; }

  void BeforeTask(int stage, const Task& task) override {
    stage_ = stage;
    delays_.BeforeTask(stage, task);
  }
  void OnRead(std::int64_t, const Layer& layer, LayerRead& read) override {
    if (layer.IsVersioned()) Uses(written_, {layer.id, read.version});
    Uses(loaded_, {layer.id, stage_});
    Uses(written_back_, {layer.id, stage_});  // batch norm's forward changes buffers
    const std::lock_guard lock(mutex_);
    for (const at::Tensor& parameter : read.parameters) unkept_ += !FakeDevice::IsUsed(parameter);
  }
  void BeforeTransfer(const Transfer& transfer) override { delays_.BeforeTransfer(transfer); }
  void OnTransfer(const Transfer& transfer) override {
    const Key copy{transfer.layer, transfer.stage};
    if (transfer.kind == Transfer::Kind::kLoad) {
      Uses(home_, {transfer.layer, 0});
      Writes(loaded_, copy);
    } else {
      Uses(written_, {transfer.layer, Newest(transfer.layer)});
      Writes(home_, {transfer.layer, 0});
      Writes(written_back_, copy);
    }
  }
  void OnForward(std::int64_t seq, std::int32_t microbatch, const Layer&,
                 const at::Tensor&) override {
    Uses(activations_, {seq, microbatch});
    Writes(activations_, {seq, microbatch});
  }
  bool OnGradients(std::int64_t seq, std::int32_t microbatch, const Layer&, std::span<at::Tensor>,
                   std::span<const at::Tensor>) override {
    // On every stage after the last stage's forward: gradients have come from there.
    Uses(activations_, {seq, microbatch});
    return false;
  }
  void BeforeUpdate(std::int64_t, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    Uses(written_, {layer.id, state.version});
  }
  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                   LayerState&) override {
    Writes(written_, {layer.id, seq});
    const std::lock_guard lock(mutex_);
    newest_[layer.id] = seq;
  }

 private:
  using Moments = std::map<std::pair<std::int64_t, std::int64_t>, FakeDevice::Moment>;
  using Key = Moments::key_type;

  std::int64_t Newest(int layer) {
    const std::lock_guard lock(mutex_);
    return newest_.at(layer);
  }
  void Uses(Moments& moments, const Key& key) {
    const std::lock_guard lock(mutex_);
    const FakeDevice::Moment& moment = moments[key];
    if (moment.stream >= 0 && moment.stream != FakeDevice::Now().stream) ++crossings_;
    if (!FakeDevice::IsAfter(moment)) ++violations_;
  }
  void Writes(Moments& moments, const Key& key) {
    const std::lock_guard lock(mutex_);
    moments[key] = FakeDevice::Now();
  }

  RandomDelays delays_;
  std::mutex mutex_;
  Moments written_;                     ///< by layer and version
  Moments loaded_;                      ///< by layer and stage
  Moments written_back_;                ///< likewise
  Moments home_;                        ///< by layer
  std::map<int, std::int64_t> newest_;  ///< by layer: version
  Moments activations_;                 ///< by subnet and micro-batch: the newest activation
  std::int64_t violations_ = 0;
  std::int64_t crossings_ = 0;
  std::int64_t unkept_ = 0;
  inline static thread_local int stage_ = -1;
};

/// Delays, frozen layers, batch norm, dropout and moving partitions; a tied head, on text.
inline std::vector<std::pair<const char*, Spec>> DeviceSpecs() {
  Spec plain = SmallSpec();
  plain.training.microbatches = 3;
  Spec frozen = SmallSpec();
  frozen.supernet.stem.trainable = false;
  Spec text = SmallTextSpec();
  text.supernet.blocks[1].delay = 2;
  return {
      {"plain", plain}, {"frozen", frozen}, {"delayed", DelayedRanksSpec(4, 2)}, {"text", text}};
}

inline void ExpectEqual(const RanksRun& run, const RanksRun& reference) {
  for (const TrainingOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.status, RunStatus::kComplete) << outcome.detail;
  }
  // Without printing them: they are no text.
  EXPECT_TRUE(ContentsOf(run.rows) == ContentsOf(reference.rows));
  EXPECT_TRUE(run.layers == reference.layers);
}

/// Full records and checkpoints of a training with `options` on devices are those of the same
/// without devices and without a budget.
inline void ExpectSameRecordsOnDevices(const Spec& spec, const TrainingOptions& options) {
  const auto train = [&](FakeDevice* device, MemorySink& sink) {
    Experiment experiment = MakeExperiment(spec);
    TrainingOptions these = options;
    if (!device) these.device_memory.reset();
    these.record_level = RecordLevel::kFull;
    these.checkpoints.sink = &sink;
    these.checkpoints.every = 5;
    if (device) these.open_stream = device->Opener();
    return ContentsOf(TrainedRows(experiment, these));
  };
  MemorySink expected;
  const auto reference = train(nullptr, expected);
  for (const std::uint32_t seed : {1, 2, 3}) {
    FakeDevice device(seed);
    MemorySink sink;
    EXPECT_TRUE(train(&device, sink) == reference) << "seed " << seed;
    EXPECT_TRUE(sink.rows == expected.rows) << "seed " << seed;
  }
}

/// Ranks with a device each leave the sequential reference's bits.
inline void ExpectSameBitsOnRanks(const Spec& spec, const TrainingOptions& options) {
  const RanksRun reference = TrainAlone(spec, SequentialOptions());
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(::testing::Message() << ranks << " ranks");
    std::vector<std::unique_ptr<FakeDevice>> devices;
    for (int rank = 0; rank < ranks; ++rank) {
      devices.push_back(std::make_unique<FakeDevice>(static_cast<std::uint32_t>(rank)));
    }
    RanksSetting setting;
    setting.prepare = [&](int rank, TrainingOptions& these, Experiment&) {
      these.open_stream = devices[static_cast<std::size_t>(rank)]->Opener();
    };
    ExpectEqual(TrainOnRanks(spec, ranks, options, setting), reference);
  }
}

}  // namespace verbatim
