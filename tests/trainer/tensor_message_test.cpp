// Tensors and layers arrive as they were sent: values, strides and alignment.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <vector>

#include "tests/trainer/small_run.h"
#include "trainer/layer_message.h"
#include "trainer/tensor_message.h"

namespace verbatim {
namespace {

std::uintptr_t Remainder(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64;
}

TEST(TensorMessageTest, StridesAndAlignmentAreKept) {
  const at::Tensor base = at::arange(240, at::kFloat).view({4, 5, 12});
  const at::Tensor tensors[] = {base,
                                base.transpose(0, 2),
                                base.narrow(2, 3, 5),
                                base.narrow(0, 1, 2).permute({1, 2, 0}),
                                base.select(1, 2),
                                base.narrow(1, 0, 1).expand({4, 7, 12}),
                                base.narrow(0, 0, 0),
                                at::arange(7, at::kLong).narrow(0, 3, 2),
                                base.sum()};
  for (const at::Tensor& tensor : tensors) {
    std::vector<SentTensor> sent;
    AppendStrided(tensor, sent);
    TensorReader reader(sent, at::kCPU);
    const Result<at::Tensor> arrived = reader.Strided();
    ASSERT_TRUE(arrived.has_value()) << arrived.error().message;
    EXPECT_TRUE(reader.End().has_value());
    EXPECT_EQ(arrived->sizes(), tensor.sizes());
    EXPECT_EQ(arrived->strides(), tensor.strides());
    EXPECT_TRUE(at::equal(*arrived, tensor));
    if (tensor.numel() == 0) continue;
    EXPECT_EQ(Remainder(*arrived), Remainder(tensor));
    EXPECT_NE(arrived->const_data_ptr(), tensor.const_data_ptr());
  }
}

TEST(TensorMessageTest, ALayoutThatDoesNotFitIsRefused) {
  const std::vector<std::vector<std::int64_t>> layouts = {
      {},        {4},        {4, 1},     {5, 1, 0},         {-4, 1, 0},        {4, -1, 0},
      {4, 2, 0}, {4, 1, -1}, {4, 1, 64}, {INT64_MAX, 1, 0}, {4, INT64_MAX, 0}, {0, 1, 0}};
  for (const std::vector<std::int64_t>& layout : layouts) {
    std::vector<SentTensor> sent;
    AppendTensor(at::arange(4, at::kFloat), sent);
    AppendNumbers(layout, sent);
    EXPECT_FALSE(TensorReader(sent, at::kCPU).Strided().has_value());
  }
  EXPECT_FALSE(TensorReader({}, at::kCPU).Strided().has_value());
}

TEST(TensorMessageTest, WhatGoesBesideAMessageIsLaidOutAlike) {
  const at::Tensor base = at::arange(240, at::kFloat).view({4, 5, 12});
  const at::Tensor tensors[] = {base.transpose(0, 2), base.narrow(2, 3, 5), base.narrow(0, 0, 0),
                                at::arange(7, at::kLong).narrow(0, 3, 2), base.sum()};
  Message message;
  TensorWriter writer(message, /*goes_directly=*/true);
  const std::vector<std::int64_t> numbers = {4, 5};
  for (const at::Tensor& tensor : tensors) writer.Strided({tensor, nullptr});
  writer.Numbers(numbers);
  const std::vector<HandedTensor> payload = writer.Finish();
  ASSERT_EQ(payload.size(), std::size(tensors));
  ASSERT_EQ(message.tensors.size(), 2u);  // the numbers, and what goes beside them
  EXPECT_GE(writer.bytes(), 960);

  std::span<const SentTensor> sent = message.tensors;
  const auto layouts = PayloadOf(sent);
  ASSERT_TRUE(layouts.has_value()) << layouts.error().message;
  std::vector<at::Tensor> memory;
  for (std::size_t i = 0; i < layouts->size(); ++i) {
    EXPECT_EQ((*layouts)[i], LayoutOf(tensors[i]));
    memory.push_back(AllocateAlike((*layouts)[i], at::kCPU));
    ElementsOf(memory.back()).copy_(ElementsOf(payload[i].tensor));
  }
  TensorReader reader(sent, memory);
  for (const at::Tensor& tensor : tensors) {
    const auto arrived = reader.Strided();
    ASSERT_TRUE(arrived.has_value());
    EXPECT_EQ(arrived->strides(), tensor.strides());
    EXPECT_TRUE(at::equal(*arrived, tensor));
    EXPECT_TRUE(tensor.numel() == 0 || Remainder(*arrived) == Remainder(tensor));
  }
  EXPECT_FALSE(reader.Strided().has_value());
  EXPECT_FALSE(reader.End().has_value());
  EXPECT_EQ(*reader.Numbers(), numbers);
  EXPECT_TRUE(reader.End().has_value());
}

TEST(TensorMessageTest, WhatIsSaidToGoBesideAMessageIsChecked) {
  std::vector<std::int64_t> good;
  AppendLayout(LayoutOf(at::arange(6, at::kFloat).view({2, 3})), good);
  ASSERT_TRUE(LayoutsOf(good).has_value());
  for (std::size_t length = 1; length < good.size(); ++length) {
    EXPECT_FALSE(LayoutsOf(std::span(good).first(length)).has_value()) << length;
  }
  for (std::size_t place = 0; place < good.size(); ++place) {
    for (const std::int64_t value : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
      std::vector<std::int64_t> bad = good;
      bad[place] = value;
      EXPECT_FALSE(LayoutsOf(bad).has_value()) << place;
    }
  }
  std::span<const SentTensor> nothing;
  EXPECT_FALSE(PayloadOf(nothing).has_value());
  std::vector<SentTensor> no_numbers;
  AppendTensor(at::arange(4, at::kFloat), no_numbers);
  std::span<const SentTensor> sent = no_numbers;
  EXPECT_FALSE(PayloadOf(sent).has_value());
  TensorReader reader({}, std::vector{at::arange(4, at::kFloat)});
  EXPECT_FALSE(reader.Tensor(at::kFloat, std::vector<std::int64_t>{5}).has_value());
}

TEST(LayerMessageTest, AWholeLayerArrivesAndAWrongOneIsRefused) {
  Spec spec = SmallSpec();
  spec.supernet.stem.delay = 3;
  Experiment experiment = MakeExperiment(spec);
  TrainedRows(experiment, SequentialOptions());
  const OptimizerSpec& optimizer = spec.training.optimizer;
  for (const Layer& layer : experiment.space.layers()) {
    const LayerState& state = experiment.layers[layer.id];
    Message message;
    TensorWriter writer(message);
    PutState(state, message, writer);
    EXPECT_TRUE(writer.Finish().empty());
    const auto take = [&] {
      return TakeLayer(message, layer, optimizer, TensorReader(message.tensors, at::kCPU));
    };
    const auto received = take();
    ASSERT_TRUE(received.has_value()) << received.error().message;
    EXPECT_TRUE(received->is_whole);
    EXPECT_EQ(received->state.version, state.version);
    EXPECT_EQ(received->state.earlier.size(), state.earlier.size());
    EXPECT_EQ(WeightsDigest(layer, received->state), WeightsDigest(layer, state));
    EXPECT_EQ(OptimizerStateDigest(layer, optimizer, received->state),
              OptimizerStateDigest(layer, optimizer, state));
    for (std::size_t i = 0; i < state.parameters.size(); ++i) {
      EXPECT_EQ(received->state.parameters[i].requires_grad(), layer.trainable);
    }
    while (!message.tensors.empty()) {
      message.tensors.pop_back();
      const auto cut = take();
      const bool is_read = message.tensors.size() == layer.parameters.size();
      EXPECT_EQ(cut.has_value(), is_read) << message.tensors.size() << " tensors";
    }
  }
}

TEST(LayerMessageTest, VersionsToReadMayArriveInAnyOrder) {
  Layer layer = MakeExperiment(SmallSpec()).space.layers().front();
  layer.delay = 4;
  const auto read = [](std::int64_t version) {
    return LayerRead{version, {at::arange(version, version + 1, at::kFloat)}};
  };
  LayerState state;
  state.parameters = read(-1).parameters;
  for (const std::int64_t version : {5, 2, 5, 6, 3}) AddReadVersion(layer, read(version), state);
  for (const auto& [seq, version] : {std::pair{7, 2}, {8, 3}, {9, 3}, {10, 5}, {11, 6}}) {
    EXPECT_EQ(ReadVersion(layer, state, seq).version, version) << seq;
    EXPECT_EQ(ReadVersion(layer, state, seq).parameters.front().item<float>(),
              static_cast<float>(version));
  }
  AddReadVersion(layer, read(9), state);  // 10 and up read 5 or later
  EXPECT_EQ(state.earlier.front().version, 5);
}

}  // namespace
}  // namespace verbatim
