// Proves that a candidate that does not fit is refused with its block, its shapes and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "supernet/search_space.h"
#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const SpecText& text, const char* message, ActivationShape input = {3, 8, 8}) {
  const auto space = SearchSpace::Build(ParseOrDie(text.Text()), input, 10);
  ASSERT_FALSE(space) << text.Text();
  EXPECT_EQ(space.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(space.error().message, HasSubstr("spec \"small\": "));
  EXPECT_THAT(space.error().message, HasSubstr(message));
}

TEST(SearchSpaceErrors, CandidatesThatDoNotFit) {
  const struct {
    const char* block;
    const char* message;
  } cases[] = {
      {R"({"candidates": [{"op": "conv"}, {"op": "conv", "kernel": 9}]})",
       "supernet.blocks[0].candidates[1]: its kernel spans 9 pixels, but its input is 8×8×8"},
      {R"({"candidates": [{"op": "mbconv", "kernel": 9}]})", "its kernel spans 9 pixels"},
      {R"({"candidates": [{"op": "avg_pool", "kernel": 9}]})", "its kernel spans 9 pixels"},
      {R"({"candidates": [{"op": "conv", "kernel": 3, "dilation": 4}]})",
       "its kernel spans 9 pixels"},
      {R"({"stride": 2, "repeat": 2, "candidates": [{"op": "conv", "kernel": 5}]})",
       "supernet.blocks[0] (repeat 1).candidates[0]: its kernel spans 5 pixels"},
      {R"({"candidates": [{"op": "conv", "groups": 3}]})",
       "3 groups do not divide 8 input and 8 output channels"},
      {R"({"channels": 4, "candidates": [{"op": "conv", "groups": 8}]})",
       "8 groups do not divide 8 input and 4 output channels"},
      {R"({"channels": 4, "candidates": [{"op": "conv"}, {"op": "skip"}]})",
       "candidates[1]: \"skip\" keeps its input's shape 8×8×8"},
      {R"({"stride": 2, "candidates": [{"op": "conv"}, {"op": "skip"}]})",
       "candidates[1]: \"skip\" keeps its input's shape 8×8×8"},
      {R"({"features": 8, "candidates": [{"op": "skip"}]})", "\"skip\" keeps its input's shape"},
      {R"({"channels": 4, "candidates": [{"op": "max_pool"}]})",
       "pooling keeps its 8 channels, but the block gives 4"},
      {R"({"features": 4, "candidates": [{"op": "conv"}]})",
       "\"conv\" gives an image, but the block gives 4 features"},
      {R"({"channels": 4, "candidates": [{"op": "linear"}]})",
       "\"linear\" gives a vector, but the block gives 4 channels"},
      {R"({"candidates": [{"op": "linear"}]})", "\"linear\" flattens its input 8×8×8"},
      {R"({"features": 4, "stride": 2, "candidates": [{"op": "linear"}]})",
       "\"linear\" has no stride, but the block has stride 2"},
      {R"({"features": 4, "candidates": [{"op": "ffn", "hidden": 4}]})",
       "\"ffn\" takes a vector, but its input is 8×8×8"},
      {R"({"residual": true, "stride": 2, "candidates": [{"op": "conv"}]})",
       "its output 8×4×4 cannot be added to its input 8×8×8"},
      {R"({"residual": true, "features": 512, "candidates": [{"op": "linear"}]})",
       "its output 512 cannot be added to its input 8×8×8"},
      {R"({"features": 4, "candidates": [{"op": "linear"}]}, {"candidates": [{"op": "conv"}]})",
       "supernet.blocks[1].candidates[0]: \"conv\" takes an image, but its input is a vector of 4"},
      {R"({"features": 4, "candidates": [{"op": "linear"}]}, {"candidates": [{"op": "avg_pool"}]})",
       "\"avg_pool\" takes an image"},
      {R"({"features": 4, "candidates": [{"op": "linear"}]},
          {"features": 5, "candidates": [{"op": "linear"}, {"op": "skip"}]})",
       "supernet.blocks[1].candidates[1]: \"skip\" keeps its input's shape 4"},
      {R"({"channels": 16777216, "candidates": [{"op": "conv", "kernel": 7}]},
          {"candidates": [{"op": "conv"}]})",
       "supernet.blocks[1].candidates[0]: its conv.weight has more than 17179869184 elements"},
      {R"({"repeat": 1048576, "candidates": [{"op": "skip"}]})",
       "the supernet has more than 1048576 layers"},
  };
  for (const auto& c : cases) ExpectRefused(WithBlock(c.block), c.message);
}

/// Specs that no text gives: made by hand.
TEST(SearchSpaceErrors, StemAndHeadAreOneOperator) {
  Spec spec = ParseOrDie(SpecText().Text());
  spec.supernet.stem.candidates.push_back(spec.supernet.stem.candidates[0]);
  EXPECT_FALSE(SearchSpace::Build(spec, {3, 8, 8}, 10));
  spec = ParseOrDie(SpecText().Text());
  spec.supernet.head.candidates[0].kind = OperatorKind::kLinear;
  EXPECT_FALSE(SearchSpace::Build(spec, {3, 8, 8}, 10));
  spec = ParseOrDie(SpecText().Text());
  spec.supernet.blocks[0].candidates.clear();
  EXPECT_FALSE(SearchSpace::Build(spec, {3, 8, 8}, 10));
  spec = ParseOrDie(SpecText().Text());
  spec.training.microbatches = 5;  // of 8 rows
  EXPECT_FALSE(SearchSpace::Build(spec, {3, 8, 8}, 10));
}

TEST(SearchSpaceErrors, BatchNormOverOneValue) {
  SpecText text = WithBlock(R"({"stride": 2, "candidates": [{"op": "conv", "kernel": 1}]})");
  text.stem = R"({"op": "conv", "channels": 4, "kernel": 1})";
  const char* message =
      "supernet.blocks[0].candidates[0]: its batch norm would get one value per channel";
  text.sizes = R"("subnets": 1, "batch": 9, "microbatches": 3)";
  EXPECT_TRUE(SearchSpace::Build(ParseOrDie(text.Text()), {1, 2, 2}, 10));
  text.sizes = R"("subnets": 1, "batch": 10, "microbatches": 4)";
  ExpectRefused(text, message, {1, 2, 2});
  EXPECT_TRUE(SearchSpace::Build(ParseOrDie(text.Text()), {1, 3, 2}, 10));
}

TEST(SearchSpaceErrors, NormalisationOfOtherChannels) {
  SpecText text;
  text.data = R"({"format": "idx", "folder": "d", "mean": [1, 2]})";
  ExpectRefused(text, "data.mean holds 2 numbers, but the images have 3 channels");
  EXPECT_TRUE(SearchSpace::Build(ParseOrDie(text.Text()), {2, 8, 8}, 10));
  text.data = R"({"format": "idx", "folder": "d", "std": [1, 2, 3, 4]})";
  ExpectRefused(text, "data.std holds 4 numbers");
}

TEST(SearchSpaceErrors, StemSaysItsName) {
  SpecText text;
  text.stem = R"({"op": "conv", "kernel": 9})";
  ExpectRefused(text, "spec \"small\": supernet.stem: its kernel spans 9 pixels");
}

}  // namespace
}  // namespace verbatim
