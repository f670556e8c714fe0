// Proves positions, layer ids and names, shapes and the tensors of every operator.
#include "supernet/search_space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

/// "name D0xD1 init, …" of tensors.
std::string ToText(const std::vector<TensorSpec>& tensors) {
  std::string text;
  for (const TensorSpec& tensor : tensors) {
    text += text.empty() ? tensor.name : ", " + tensor.name;
    text += fmt::format(" {}", fmt::join(tensor.shape, "x"));
    constexpr const char* kInit[] = {" k", " 0", " 1"};
    text += kInit[static_cast<int>(tensor.init)];
  }
  return text;
}

TEST(SearchSpace, NumbersPositionsAndLayers) {
  const SearchSpace space = BuildOrDie(
      ParseOrDie(WithBlock(R"({"repeat": 2, "candidates": [{"op": "conv"}, {"op": "skip"}]},
                   {"channels": 16, "stride": 2, "repeat": 2, "candidates": [{"op": "conv"},
                    {"op": "mbconv"}, {"op": "separable_conv"}]})")
                     .Text()));
  std::vector<std::string> names;
  for (const Layer& layer : space.layers()) {
    EXPECT_EQ(layer.id, static_cast<int>(names.size()));
    EXPECT_EQ(&space.layer(layer.id), &layer);
    names.push_back(layer.name);
  }
  EXPECT_THAT(names,
              ElementsAre("stem", "block0.0", "block0.1", "block1.0", "block1.1", "block2.0",
                          "block2.1", "block2.2", "block3.0", "block3.1", "block3.2", "head"));
  EXPECT_EQ(space.positions(), 6);
  EXPECT_EQ(space.blocks(), 4);
  EXPECT_EQ(space.candidates(0), 1);
  EXPECT_EQ(space.candidates(2), 2);
  EXPECT_EQ(space.candidates(5), 1);
  const std::vector<std::uint16_t> choices = {0, 1, 2, 1};
  std::vector<std::string> chosen;
  for (int position = 0; position < space.positions(); ++position) {
    const Layer& layer = space.LayerAt(position, choices);
    EXPECT_EQ(layer.position, position);
    chosen.push_back(layer.name);
  }
  EXPECT_THAT(chosen, ElementsAre("stem", "block0.0", "block1.1", "block2.2", "block3.1", "head"));
  // Only the first of repeated blocks has the stride.
  EXPECT_EQ(space.layer(5).stride, 2);
  EXPECT_EQ(space.layer(5).output, (ActivationShape{16, 4, 4}));
  EXPECT_EQ(space.layer(8).stride, 1);
  EXPECT_EQ(space.layer(8).input, (ActivationShape{16, 4, 4}));
  EXPECT_EQ(space.layer(8).output, (ActivationShape{16, 4, 4}));
}

struct OperatorCase {
  const char* block;
  const char* output;
  const char* parameters;
  const char* buffers;
};

/// Each on 8 channels of 8 × 8 or 7 × 7.
TEST(SearchSpace, GivesEveryImageOperatorItsTensors) {
  const OperatorCase cases[] = {
      {R"({"channels": 12, "candidates": [{"op": "conv", "kernel": 5}]})", "12×8×8",
       "conv.weight 12x8x5x5 k, bn.weight 12 1, bn.bias 12 0",
       "bn.running_mean 12 0, bn.running_var 12 1"},
      {R"({"channels": 4, "stride": 2, "candidates": [{"op": "conv", "groups": 4, "dilation": 3}]})",
       "4×4×4", "conv.weight 4x2x3x3 k, bn.weight 4 1, bn.bias 4 0",
       "bn.running_mean 4 0, bn.running_var 4 1"},
      {R"({"channels": 12, "candidates": [{"op": "separable_conv"}]})", "12×8×8",
       "depthwise.weight 8x1x3x3 k, pointwise.weight 12x8x1x1 k, bn.weight 12 1, bn.bias 12 0",
       "bn.running_mean 12 0, bn.running_var 12 1"},
      {R"({"channels": 12, "stride": 2, "candidates": [{"op": "mbconv", "kernel": 5}]})", "12×4×4",
       "expand.weight 48x8x1x1 k, bn1.weight 48 1, bn1.bias 48 0, depthwise.weight 48x1x5x5 k, "
       "bn2.weight 48 1, bn2.bias 48 0, project.weight 12x48x1x1 k, bn3.weight 12 1, bn3.bias 12 0",
       "bn1.running_mean 48 0, bn1.running_var 48 1, bn2.running_mean 48 0, bn2.running_var 48 1, "
       "bn3.running_mean 12 0, bn3.running_var 12 1"},
      {R"({"candidates": [{"op": "mbconv", "expansion": 1}]})", "8×8×8",
       "depthwise.weight 8x1x3x3 k, bn2.weight 8 1, bn2.bias 8 0, project.weight 8x8x1x1 k, "
       "bn3.weight 8 1, bn3.bias 8 0",
       "bn2.running_mean 8 0, bn2.running_var 8 1, bn3.running_mean 8 0, bn3.running_var 8 1"},
      {R"({"stride": 2, "candidates": [{"op": "avg_pool"}]})", "8×4×4", "", ""},
      {R"({"channels": 8, "candidates": [{"op": "max_pool", "kernel": 7}]})", "8×8×8", "", ""},
      {R"({"channels": 8, "candidates": [{"op": "skip"}]})", "8×8×8", "", ""},
      {R"({"features": 20, "candidates": [{"op": "linear"}]})", "20",
       "linear.weight 20x512 k, linear.bias 20 0", ""},
  };
  for (const OperatorCase& c : cases) {
    const SearchSpace space = BuildOrDie(ParseOrDie(WithBlock(c.block).Text()));
    ASSERT_EQ(space.layers().size(), 3u) << c.block;
    const Layer& layer = space.layer(1);
    EXPECT_EQ(ToString(layer.output), c.output) << c.block;
    EXPECT_EQ(ToText(layer.parameters), c.parameters) << c.block;
    EXPECT_EQ(ToText(layer.buffers), c.buffers) << c.block;
    EXPECT_EQ(layer.IsVersioned(), *c.parameters != '\0') << c.block;
  }
}

TEST(SearchSpace, GivesEveryVectorOperatorItsTensors) {
  SpecText text = WithBlock(R"({"features": 20, "candidates": [{"op": "linear"}]},
    {"candidates": [{"op": "linear"}, {"op": "ffn", "hidden": 30}, {"op": "skip"}]},
    {"features": 5, "candidates": [{"op": "ffn", "hidden": 7}]})");
  const SearchSpace space = BuildOrDie(ParseOrDie(text.Text()), {3, 8, 8}, 6);
  EXPECT_EQ(ToText(space.layer(2).parameters), "linear.weight 20x20 k, linear.bias 20 0");
  EXPECT_EQ(ToText(space.layer(3).parameters),
            "in.weight 30x20 k, in.bias 30 0, out.weight 20x30 k, out.bias 20 0");
  EXPECT_EQ(ToText(space.layer(5).parameters),
            "in.weight 7x20 k, in.bias 7 0, out.weight 5x7 k, out.bias 5 0");
  EXPECT_EQ(ToText(space.layer(6).parameters), "linear.weight 6x5 k, linear.bias 6 0");
  EXPECT_EQ(ToString(space.layer(6).output), "6");
}

TEST(SearchSpace, RoundsOddSizesUpUnderStride) {
  const Spec spec = ParseOrDie(
      WithBlock(R"({"stride": 2, "candidates": [{"op": "conv"}, {"op": "avg_pool"}]})").Text());
  EXPECT_EQ(BuildOrDie(spec, {1, 7, 5}).layer(1).output, (ActivationShape{8, 4, 3}));
}

TEST(SearchSpace, HeadTakesChannelsOfAnImage) {
  const SearchSpace space = BuildOrDie(ParseOrDie(SpecText().Text()), {3, 8, 8}, 4);
  EXPECT_EQ(ToText(space.layers().back().parameters), "linear.weight 4x8 k, linear.bias 4 0");
}

TEST(SearchSpace, AddsTheInputToAllButSkip) {
  const SearchSpace space = BuildOrDie(
      ParseOrDie(WithBlock(R"({"residual": true, "candidates": [{"op": "conv"}, {"op": "skip"},
                    {"op": "max_pool"}]})")
                     .Text()));
  EXPECT_FALSE(space.layer(0).residual);
  EXPECT_TRUE(space.layer(1).residual);
  EXPECT_FALSE(space.layer(2).residual);
  EXPECT_TRUE(space.layer(3).residual);
}

TEST(SearchSpace, FrozenLayersAreNotVersioned) {
  SpecText text = WithBlock(R"({"trainable": false, "candidates": [{"op": "conv"}]})");
  text.head = R"({"op": "classifier", "trainable": false})";
  const SearchSpace space = BuildOrDie(ParseOrDie(text.Text()));
  EXPECT_TRUE(space.layer(0).IsVersioned());
  EXPECT_FALSE(space.layer(1).IsVersioned());
  EXPECT_FALSE(space.layer(1).buffers.empty());
  EXPECT_FALSE(space.layer(2).IsVersioned());
}

TEST(SearchSpace, DescribesOperators) {
  using Kind = OperatorKind;
  EXPECT_EQ(Describe({.kind = Kind::kConv}), "conv k3");
  EXPECT_EQ(Describe({.kind = Kind::kConv, .dilation = 2, .groups = 4}), "conv k3 d2 g4");
  EXPECT_EQ(Describe({.kind = Kind::kMbConv, .kernel = 5}), "mbconv k5 e6");
  EXPECT_EQ(Describe({.kind = Kind::kSkip}), "skip");
  EXPECT_EQ(Describe({.kind = Kind::kLinear, .dropout = 0.5}), "linear relu p0.5");
  EXPECT_EQ(Describe({.kind = Kind::kFfn, .hidden = 64}), "ffn h64 relu");
}

}  // namespace
}  // namespace verbatim
