// Proves the counts of operations and elements on sequences by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "supernet/costs.h"
#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

/// 12 places of 8 features, 4 of them the encoder's; micro-batches of 4.
Spec SpecWith(const std::string& block) {
  SpecText text = WithBlock(block);
  text.data = R"({"format": "text", "folder": "d", "file": "t", "length": 12, "source": 4})";
  text.stem = R"({"op": "embedding", "features": 8})";
  text.sizes = R"("subnets": 10, "batch": 8, "microbatches": 2)";
  return ParseOrDie(text.Text());
}

SearchSpace Build(const Spec& spec) {
  return BuildOrDie(spec, ShapeOfSpec(spec.data).value(), kByteClasses);
}

TEST(SequenceCosts, CountsWhatEachOperatorComputesAndKeeps) {
  constexpr double kNorm = 8 * 64;  // of the decoder's 8 places of 8 features
  const struct {
    const char* block;
    double operations;  ///< of one sample
    std::int64_t kept;  ///< elements of one sample, its 96 inputs included
  } cases[] = {
      // One multiply-add for each of 8·8·3 weights at 8 places, then relu; two places of padding.
      {R"({"candidates": [{"op": "conv1d"}]})", kNorm + 2 * 192 * 8 + 64, 96 + 64 + 80 + 64},
      {R"({"part": "encoder", "candidates": [{"op": "conv1d", "activation": "none"}]})",
       kNorm / 2 + 2 * 192 * 4, 96 + 32 + 48},
      {R"({"candidates": [{"op": "separable_conv1d", "activation": "none"}]})",
       kNorm + 2 * (24 + 64) * 8, 96 + 64 + 80 + 64},
      {R"({"candidates": [{"op": "lightweight_conv", "kernel": 5}]})",
       kNorm + 2 * (128 + 40 + 64) * 8 + 4 * 64, 96 + 64 + 3 * 64 + 96},
      {R"({"candidates": [{"op": "attention"}]})",
       kNorm + 2 * (192 + 64) * 8 + 2 * (2 * 8 * 8 * 8) + 4 * (4 * 64), 96 + 64 + 256 + 64 + 192},
      {R"({"candidates": [{"op": "cross_attention", "heads": 2}]})",
       kNorm + kNorm / 2 + 2 * 128 * 8 + 2 * 128 * 4 + 2 * (2 * 8 * 8 * 4) + 4 * (2 * 32),
       96 + 64 + 64 + 96 + 64 + 64},
      {R"({"candidates": [{"op": "glu"}]})", kNorm + 2 * 128 * 8 + 4 * 64, 96 + 64 + 128},
      {R"({"candidates": [{"op": "glu", "dropout": 0.5}]})", kNorm + 2 * 128 * 8 + 4 * 64 + 2 * 64,
       96 + 64 + 128 + 128},
      {R"({"candidates": [{"op": "ffn", "hidden": 5}]})", kNorm + 2 * 80 * 8 + 40,
       96 + 64 + 40 + 40},
      {R"({"candidates": [{"op": "skip"}]})", 0, 0},
  };
  for (const auto& c : cases) {
    const Spec spec = SpecWith(c.block);
    const LayerCost cost = AnalyticCosts(Build(spec), spec).layers.at(1);
    EXPECT_EQ(cost.forward, 4 * c.operations) << c.block;
    EXPECT_EQ(cost.activation_bytes, 4 * 4 * c.kept) << c.block;
  }
}

TEST(SequenceCosts, CountsStemAndHead) {
  const Spec spec = SpecWith(R"({"candidates": [{"op": "skip"}]})");
  const CostTable costs = AnalyticCosts(Build(spec), spec);
  EXPECT_EQ(costs.layers.front().forward, 4 * 96);
  EXPECT_EQ(costs.layers.front().parameter_bytes, 4 * (256 + 12) * 8);
  EXPECT_EQ(costs.layers.back().forward, 4 * (8 * 64 + (2 * 8 + 1) * 256 * 8));
  EXPECT_EQ(costs.layers.back().output_bytes, 4 * 4 * 256 * 8);
}

}  // namespace
}  // namespace verbatim
