// Proves what a text spec gives: fields and their errors, the tensors of every operator on
// sequences, and that what does not fit is refused with its place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

/// Sequences of 12 bytes, the first `source` of which are the encoder's; 8 features.
SpecText SequenceText(const std::string& block, int source = 0) {
  SpecText text = WithBlock(block);
  text.data = fmt::format(
      R"({{"format": "text", "folder": "d", "file": "t", "length": 12, "source": {}}})", source);
  text.stem = R"({"op": "embedding", "features": 8})";
  return text;
}

Result<SearchSpace> Build(const SpecText& text) {
  const Spec spec = ParseOrDie(text.Text());
  return SearchSpace::Build(spec, ShapeOfSpec(spec.data).value(), kByteClasses);
}

std::string ParametersOf(const Layer& layer) {
  std::string text;
  for (const TensorSpec& tensor : layer.parameters) {
    constexpr const char* kInit[] = {"k", "0", "1"};
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", tensor.name,
                        fmt::join(tensor.shape, "x"), kInit[static_cast<int>(tensor.init)]);
  }
  return text;
}

TEST(SequenceSpace, GivesEveryOperatorItsTensors) {
  const std::string ln = "ln.weight 8 1, ln.bias 8 0";
  const struct {
    const char* op;
    std::string parameters;
  } cases[] = {
      {R"("op": "conv1d", "kernel": 5)", ln + ", conv.weight 8x8x5 k, conv.bias 8 0"},
      {R"("op": "separable_conv1d")",
       ln + ", depthwise.weight 8x1x3 k, pointwise.weight 8x8x1 k, pointwise.bias 8 0"},
      {R"("op": "lightweight_conv", "kernel": 7, "heads": 2)",
       ln +
           ", in.weight 16x8 k, in.bias 16 0, kernel.weight 2x7 k, out.weight 8x8 k, out.bias 8 0"},
      {R"("op": "attention")",
       ln + ", in.weight 24x8 k, in.bias 24 0, out.weight 8x8 k, out.bias 8 0"},
      {R"("op": "cross_attention", "heads": 8)",
       ln + ", memory_ln.weight 8 1, memory_ln.bias 8 0, query.weight 8x8 k, query.bias 8 0, "
            "memory.weight 16x8 k, memory.bias 16 0, out.weight 8x8 k, out.bias 8 0"},
      {R"("op": "glu")", ln + ", linear.weight 16x8 k, linear.bias 16 0"},
      {R"("op": "ffn", "hidden": 20)",
       ln + ", in.weight 20x8 k, in.bias 20 0, out.weight 8x20 k, out.bias 8 0"},
      {R"("op": "skip")", ""},
  };
  for (const auto& c : cases) {
    const auto space = Build(SequenceText(fmt::format(R"({{"candidates": [{{{}}}]}})", c.op), 4));
    ASSERT_TRUE(space) << space.error().message;
    EXPECT_EQ(ParametersOf(space->layer(0)), "embedding.weight 256x8 k, position.weight 12x8 k");
    EXPECT_EQ(ParametersOf(space->layer(1)), c.parameters) << c.op;
    EXPECT_EQ(space->layer(1).output, (ActivationShape{.channels = 8, .length = 12})) << c.op;
    EXPECT_EQ(space->layer(1).source, 4);
    EXPECT_EQ(ParametersOf(space->layer(2)), ln + ", linear.weight 256x8 k, linear.bias 256 0");
    EXPECT_EQ(space->layer(2).output, (ActivationShape{.channels = 256, .length = 8}));
  }
}

TEST(SequenceSpace, WidthsChangeWhereThereIsNoEncoder) {
  SpecText text = SequenceText(R"({"features": 6, "candidates": [{"op": "glu"},
    {"op": "attention"}, {"op": "lightweight_conv"}, {"op": "conv1d"}]})");
  const auto space = Build(text);
  ASSERT_TRUE(space) << space.error().message;
  for (int id = 1; id < 5; ++id) EXPECT_EQ(ToString(space->layer(id).output), "12 places of 6");
  EXPECT_EQ(space->layer(2).parameters[4].shape, (std::vector<std::int64_t>{6, 8}));
}

TEST(SequenceSpace, ATiedHeadHasNoMatrixOfItsOwn) {
  SpecText text = SequenceText(R"({"candidates": [{"op": "skip"}]})");
  text.head = R"({"op": "classifier", "tied": true})";
  const auto space = Build(text);
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(ParametersOf(space->layer(2)), "ln.weight 8 1, ln.bias 8 0, linear.bias 256 0");
}

TEST(SequenceSpace, DescribesOperators) {
  using Kind = OperatorKind;
  EXPECT_EQ(Describe({.kind = Kind::kLightweightConv, .kernel = 7, .heads = 16}),
            "lightweight_conv k7 16 heads relu");
  EXPECT_EQ(Describe({.kind = Kind::kAttention, .activation = Activation::kNone}),
            "attention 4 heads none");
  EXPECT_EQ(Describe({.kind = Kind::kClassifier, .tied = true}), "classifier tied");
}

TEST(SequenceSpace, TheEffectiveSpecReadsBack) {
  SpecText text = SequenceText(R"({"part": "encoder", "candidates": [{"op": "conv1d"},
    {"op": "attention", "heads": 2}, {"op": "lightweight_conv", "activation": "swish"}]})",
                               3);
  text.head = R"({"op": "classifier", "tied": true})";
  text.sizes = R"("subnets": 10, "batch": 8, "label_smoothing": 0.125)";
  const Spec spec = ParseOrDie(text.Text());
  const std::string json = SpecToJson(spec);
  EXPECT_EQ(SpecToJson(ParseOrDie(json)), json);
  EXPECT_EQ(spec.data.format, DataFormat::kText);
  EXPECT_EQ(spec.data.source, 3);
  EXPECT_EQ(spec.training.label_smoothing, 0.125);
  EXPECT_TRUE(spec.supernet.head.candidates[0].tied);
  const BlockSpec& block = spec.supernet.blocks[0];
  EXPECT_EQ(block.part, SequencePart::kEncoder);
  EXPECT_EQ(block.candidates[0].activation, Activation::kRelu);
  EXPECT_EQ(block.candidates[1].activation, Activation::kNone);
  EXPECT_EQ(block.candidates[2].activation, Activation::kSwish);
}

TEST(SequenceSpaceErrors, Fields) {
  const struct {
    std::string SpecText::*part;
    const char* text;
    const char* message;
  } cases[] = {
      {&SpecText::data, R"({"format": "text", "folder": "d", "length": 4})",
       "3:9: data.file: required, but missing"},
      {&SpecText::data, R"({"format": "text", "folder": "d", "file": "t"})",
       "3:9: data.length: required, but missing"},
      {&SpecText::data, R"({"format": "text", "folder": "d", "file": "t", "length": 0})",
       "3:66: data.length: must be from 1 to 65536, found 0"},
      {&SpecText::data, R"({"format": "text", "folder": "d", "file": "t", "length": 4, "mean": 0})",
       "3:69: data.mean: unknown field"},
      {&SpecText::data,
       R"({"format": "text", "folder": "d", "file": "t", "length": 4, "source": 4})",
       "3:79: data.source: must be below data.length 4, found 4"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "length": 4})",
       "3:42: data.length: unknown field"},
      {&SpecText::block, R"({"candidates": [{"op": "embedding"}]})",
       "7:17: supernet.blocks[0].candidates[0]: an embedding can only be the stem"},
      {&SpecText::block, R"({"part": "coder", "candidates": [{"op": "skip"}]})",
       "7:10: supernet.blocks[0].part: unknown value \"coder\""},
      {&SpecText::block, R"({"candidates": [{"op": "attention", "heads": 0}]})",
       "7:46: supernet.blocks[0].candidates[0].heads: must be from 1 to 16777216, found 0"},
      {&SpecText::block, R"({"candidates": [{"op": "glu", "activation": "gelu"}]})",
       "7:45: supernet.blocks[0].candidates[0].activation: unknown value \"gelu\""},
      {&SpecText::sizes, R"("subnets": 1, "batch": 8, "label_smoothing": 1)",
       "10:46: training.label_smoothing: must be at least 0 and below 1, found 1"},
  };
  for (const auto& c : cases) {
    SpecText text = SequenceText(R"({"candidates": [{"op": "skip"}]})");
    text.*c.part = c.text;
    const auto spec = ParseSpec(text.Text(), "test.json");
    ASSERT_FALSE(spec) << c.text;
    EXPECT_THAT(spec.error().message, HasSubstr(std::string("test.json:") + c.message));
  }
}

TEST(SequenceSpaceErrors, CandidatesThatDoNotFit) {
  const struct {
    const char* block;
    int source;
    const char* message;
  } cases[] = {
      {R"({"candidates": [{"op": "conv"}]})", 0,
       "supernet.blocks[0].candidates[0]: \"conv\" takes an image, but its input is a sequence of "
       "12"
       " places of 8"},
      {R"({"candidates": [{"op": "linear"}]})", 0,
       "\"linear\" takes a vector or an image, but its input is a sequence of 12 places of 8"},
      {R"({"candidates": [{"op": "skip"}, {"op": "attention", "heads": 3}]})", 0,
       "supernet.blocks[0].candidates[1]: 3 heads do not divide 8 features"},
      {R"({"candidates": [{"op": "lightweight_conv", "heads": 16}]})", 0,
       "16 heads do not divide 8 features"},
      {R"({"candidates": [{"op": "cross_attention"}]})", 0,
       "\"cross_attention\" is for the decoder of a sequence that has an encoder"},
      {R"({"part": "encoder", "candidates": [{"op": "cross_attention"}]})", 4,
       "\"cross_attention\" is for the decoder"},
      {R"({"part": "encoder", "candidates": [{"op": "glu"}]})", 0,
       "its part is the encoder, but no place of the sequence is the encoder's"},
      {R"({"features": 6, "candidates": [{"op": "glu"}]})", 4,
       "encoder and decoder share one width, 8, but the block gives 6"},
      {R"({"stride": 2, "candidates": [{"op": "glu"}]})", 0,
       "\"glu\" has no stride, but the block has stride 2"},
      {R"({"channels": 8, "candidates": [{"op": "glu"}]})", 0,
       "\"glu\" gives a sequence, but the block gives 8 channels"},
      {R"({"residual": true, "features": 6, "candidates": [{"op": "glu"}]})", 0,
       "its output 12 places of 6 cannot be added to its input 12 places of 8"},
      {R"({"features": 16777216, "repeat": 2, "candidates": [{"op": "glu"}]})", 0,
       "supernet.blocks[0] (repeat 1).candidates[0]: its linear.weight has more than 17179869184 "
       "elements"},
  };
  for (const auto& c : cases) {
    const auto space = Build(SequenceText(c.block, c.source));
    ASSERT_FALSE(space) << c.block;
    EXPECT_EQ(space.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(space.error().message, HasSubstr(c.message));
  }
}

TEST(SequenceSpaceErrors, StemAndHead) {
  SpecText text = SequenceText(R"({"candidates": [{"op": "skip"}]})");
  text.stem = R"({"op": "skip"})";
  EXPECT_THAT(Build(text).error().message,
              HasSubstr("supernet.stem: \"skip\" does not take a text's bytes"));
  text.stem = R"({"op": "embedding"})";
  EXPECT_THAT(Build(text).error().message, HasSubstr("does not say into how many"));
  text = SequenceText(R"({"features": 6, "candidates": [{"op": "glu"}]})");
  text.head = R"({"op": "classifier", "tied": true})";
  EXPECT_THAT(
      Build(text).error().message,
      HasSubstr("supernet.head: it is tied to an embedding of 8 features, but its input has 6"));
  SpecText images;
  images.head = text.head;
  const auto tied = SearchSpace::Build(ParseOrDie(images.Text()), {3, 8, 8}, 10);
  ASSERT_FALSE(tied);
  EXPECT_THAT(tied.error().message,
              HasSubstr("supernet.head: it is tied to the stem, which is no"));
  images = WithBlock(R"({"candidates": [{"op": "glu"}]})");
  const auto glu = SearchSpace::Build(ParseOrDie(images.Text()), {3, 8, 8}, 10);
  ASSERT_FALSE(glu);
  EXPECT_THAT(glu.error().message, HasSubstr("\"glu\" takes a sequence, but its input is 8×8×8"));
}

/// Attention keeps a score for every pair of places.
TEST(SequenceSpaceErrors, ScoresTooManyForOneMicrobatch) {
  SpecText text = SequenceText(R"({"candidates": [{"op": "attention", "heads": 8}]})");
  text.data = R"({"format": "text", "folder": "d", "file": "t", "length": 65536})";
  const auto space = Build(text);
  ASSERT_FALSE(space);
  EXPECT_THAT(space.error().message, HasSubstr("a micro-batch has more than"));
}

}  // namespace
}  // namespace verbatim
