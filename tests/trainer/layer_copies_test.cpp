// Layers on their ways between home and stages: who has which bytes, and what is freed.
#include "trainer/layer_copies.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

class LayerCopiesTest : public ::testing::Test {
 protected:
  LayerCopiesTest() : experiment_(MakeExperiment(FrozenStem())) {}

  static Spec FrozenStem() {
    Spec spec = SmallSpec();
    spec.supernet.stem.trainable = false;
    return spec;
  }
  LayerCopies Copies(std::vector<std::int64_t> room = {1 << 20, 1 << 20}) {
    std::vector<StageRoom> rooms;
    for (const std::int64_t bytes : room) rooms.push_back({at::kCPU, bytes});
    return LayerCopies(experiment_.space, experiment_.layers, std::move(rooms));
  }
  LayerState& state(int layer) { return experiment_.layers[static_cast<std::size_t>(layer)]; }
  const void* Address(int layer) { return state(layer).parameters.front().data_ptr(); }
  Digest Weights(int layer) { return WeightsDigest(experiment_.space.layer(layer), state(layer)); }

  Experiment experiment_;
  const int trained_ = 1;  ///< a convolution with batch norm and momentum
  const int frozen_ = 0;
  const std::unique_ptr<DeviceStream> stream_ = OpenDeviceStream(at::kCPU);
};

TEST_F(LayerCopiesTest, ALoadedLayerIsLiveOnItsStage) {
  const void* const home = Address(trained_);
  const Digest before = Weights(trained_);
  LayerCopies copies = Copies();
  copies.Load(0, trained_, *stream_);
  EXPECT_NE(Address(trained_), home);
  EXPECT_EQ(Weights(trained_), before);
  EXPECT_TRUE(state(trained_).parameters.front().requires_grad());
  EXPECT_TRUE(state(trained_).parameters.front().is_leaf());
  EXPECT_FALSE(state(trained_).buffers.empty());
  EXPECT_FALSE(state(trained_).optimizer_state.empty());
  copies.GiveUp({0, trained_});
  EXPECT_EQ(Address(trained_), home);
}

TEST_F(LayerCopiesTest, WhatIsWrittenBackIsWhatTheNextStageLoads) {
  const void* const home = Address(trained_);
  LayerCopies copies = Copies();
  copies.Load(0, trained_, *stream_);
  {
    const at::NoGradGuard no_grad;
    state(trained_).parameters.front().fill_(0.5);
    state(trained_).buffers.front().fill_(0.25);
    state(trained_).optimizer_state.front().fill_(0.125);
  }
  state(trained_).version = 3;
  state(trained_).updates = 1;
  const Digest written = Weights(trained_);
  copies.WriteBack(0, trained_, *stream_);
  EXPECT_NE(Address(trained_), home) << "the copy stays until it is given up";
  copies.GiveUp({0, trained_});
  EXPECT_EQ(Address(trained_), home);
  EXPECT_EQ(Weights(trained_), written);
  copies.Load(1, trained_, *stream_);
  EXPECT_EQ(Weights(trained_), written);
  EXPECT_EQ(state(trained_).optimizer_state.front().flatten()[0].item<float>(), 0.125f);
  EXPECT_EQ(state(trained_).version, 3);
  EXPECT_EQ(state(trained_).updates, 1);
}

TEST_F(LayerCopiesTest, AFrozenLayerIsOnSeveralStagesAndLiveAtHome) {
  const void* const home = Address(frozen_);
  LayerCopies copies = Copies();
  copies.Load(0, frozen_, *stream_);
  copies.Load(1, frozen_, *stream_);
  EXPECT_EQ(Address(frozen_), home);
  const at::Tensor first = copies.Read(0, frozen_).parameters.front();
  const at::Tensor second = copies.Read(1, frozen_).parameters.front();
  EXPECT_NE(first.data_ptr(), home);
  EXPECT_NE(first.data_ptr(), second.data_ptr());
  EXPECT_TRUE(at::equal(first, second));
  EXPECT_FALSE(first.requires_grad());
  EXPECT_EQ(copies.Read(0, frozen_).parameters.size(), state(frozen_).parameters.size());
  copies.GiveUp({0, frozen_});
  EXPECT_TRUE(
      at::equal(copies.Read(1, frozen_).parameters.front(), state(frozen_).parameters.front()));
}

/// Notes what it is told.
class NotingStream : public DeviceStream {
 public:
  class Noted : public DeviceMark {
    void Synchronize() const override {}
  };

  void Enter() override {}
  bool IsBehind() const override { return true; }
  Mark Record() override { return std::make_shared<Noted>(); }
  void WaitFor(const Mark&) override {}
  void Uses(const at::Tensor& tensor) override { used.push_back(tensor.data_ptr()); }
  HandedTensor Give(const at::Tensor& tensor, at::Device) override { return {tensor, Record()}; }
  at::Tensor Bring(const at::Tensor& tensor) override { return tensor; }

  std::vector<const void*> used;
};

TEST_F(LayerCopiesTest, MarksGoWithTheTensors) {
  NotingStream stream;
  LayerCopies copies = Copies();
  EXPECT_EQ(copies.SourceOf({Transfer::Kind::kLoad, 0, trained_, 0, {}}), nullptr);
  const Mark loaded = copies.Load(0, trained_, stream);
  EXPECT_NE(loaded, nullptr);
  EXPECT_EQ(state(trained_).written, loaded) << "whoever uses the layer waits for it";
  const Mark updated = stream.Record();
  state(trained_).written = updated;
  EXPECT_EQ(copies.SourceOf({Transfer::Kind::kWriteBack, 0, trained_, 0, {}}), updated);
  const void* const copy = Address(trained_);
  const Mark written = copies.WriteBack(0, trained_, stream);
  EXPECT_EQ(state(trained_).written, written) << "whoever changes the copy waits for it";
  EXPECT_EQ(stream.used.front(), copy) << "its memory is another stream's";
  EXPECT_EQ(copies.SourceOf({Transfer::Kind::kLoad, 1, trained_, 0, {}}), written);
  copies.GiveUp({0, trained_});
  EXPECT_EQ(state(trained_).written, written);
  const Mark frozen = copies.Load(1, frozen_, stream);
  EXPECT_EQ(copies.Read(1, frozen_).written, frozen);
  EXPECT_EQ(state(frozen_).written, nullptr);
}

TEST_F(LayerCopiesTest, WhatIsGivenUpIsFreed) {
  LayerCopies copies = Copies();
  copies.Load(0, trained_, *stream_);
  const auto storage = state(trained_).parameters.front().storage().getWeakStorageImpl();
  EXPECT_FALSE(storage.expired());
  copies.GiveUp({0, trained_});
  EXPECT_TRUE(storage.expired());
}

TEST_F(LayerCopiesTest, ASnapshotKeepsTheTensorsThatItBeganWith) {
  LayerCopies copies = Copies();
  copies.Load(0, trained_, *stream_);
  const void* const copy = Address(trained_);
  const LayerState snapshot = copies.Snapshot(trained_);
  copies.GiveUp({0, trained_});
  EXPECT_EQ(snapshot.parameters.front().data_ptr(), copy);
  EXPECT_TRUE(at::equal(snapshot.parameters.front(), state(trained_).parameters.front()));
}

TEST_F(LayerCopiesTest, NoStageHoldsMoreThanItsRoom) {
  const std::int64_t bytes =
      BytesOfLayers(experiment_.layers)[static_cast<std::size_t>(trained_)].total();
  LayerCopies copies = Copies({bytes - 1, bytes});
  copies.Load(1, trained_, *stream_);
  copies.GiveUp({1, trained_});
  copies.Load(1, trained_, *stream_);
  copies.GiveUp({1, trained_});
  EXPECT_DEATH(copies.Load(0, trained_, *stream_), "stage 0 holds 1 bytes too many");
}

TEST_F(LayerCopiesTest, NothingUnwrittenIsGivenUpOrLoaded) {
  LayerCopies copies = Copies();
  copies.Load(0, trained_, *stream_);
  state(trained_).version = 5;
  EXPECT_DEATH(copies.GiveUp({0, trained_}), "home has version -1");
  EXPECT_DEATH(copies.Load(1, trained_, *stream_), "home has version -1");
}

TEST_F(LayerCopiesTest, BytesCountEverythingThatALayerHas) {
  const LayerState& trained = state(trained_);
  const LayerBytes bytes = BytesOfLayers(experiment_.layers)[static_cast<std::size_t>(trained_)];
  std::int64_t parameters = 0;
  for (const at::Tensor& tensor : trained.parameters) parameters += tensor.numel() * 4;
  EXPECT_EQ(bytes.parameters, parameters);
  // Momentum as large as the parameters, and batch norm's statistics.
  EXPECT_GT(bytes.state, parameters);
}

}  // namespace
}  // namespace verbatim
