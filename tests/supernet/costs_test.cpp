// Proves the counts of operations and bytes by hand on small shapes, and that a cost file gives its
// costs back, and is refused for another space.
#include "supernet/costs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/supernet/spec_text.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

/// On 8 × 8 images of 3 channels, which the stem makes 8; batches of 8 in 2 micro-batches of 4.
Spec SpecWith(const std::string& blocks, const std::string& optimizer = R"({"kind": "sgd"})") {
  SpecText text = WithBlock(blocks);
  text.sizes = R"("subnets": 10, "batch": 8, "microbatches": 2)";
  text.optimizer = optimizer;
  return ParseOrDie(text.Text());
}

struct OperatorCase {
  const char* block;  ///< its input is 8×8×8
  double operations;  ///< of one sample
  std::int64_t kept;  ///< elements of one sample, input included
};

TEST(CostsTest, CountsWhatEachOperatorComputesAndKeeps) {
  const OperatorCase cases[] = {
      // 4·8·9 weights at 16 pixels; batch norm and relu of 4×4×4 elements.
      {R"({"channels": 4, "stride": 2, "candidates": [{"op": "conv"}]})", 2.0 * 288 * 16 + 9 * 64,
       512 + 64},
      {R"({"candidates": [{"op": "conv", "kernel": 1, "groups": 8}]})", 2.0 * 8 * 64 + 9 * 512,
       512 + 512},
      {R"({"candidates": [{"op": "separable_conv"}]})", 2.0 * (72 + 64) * 64 + 9 * 512,
       512 + 512 + 512},
      {R"({"candidates": [{"op": "mbconv", "expansion": 1}]})",
       2.0 * (72 + 64) * 64 + 9 * 512 + 8 * 512, 512 + 3 * 512 + 512},
      {R"({"candidates": [{"op": "mbconv", "expansion": 2}]})",
       2.0 * 128 * 64 + 9 * 1024 + 2.0 * (144 + 128) * 64 + 9 * 1024 + 8 * 512,
       512 + 3 * 1024 + 3 * 1024 + 512},
      {R"({"stride": 2, "candidates": [{"op": "avg_pool"}]})", 9 * 128, 512},
      {R"({"stride": 2, "candidates": [{"op": "max_pool"}]})", 9 * 128, 512 + 256},
      {R"({"candidates": [{"op": "skip"}]})", 0, 0},
      {R"({"residual": true, "candidates": [{"op": "max_pool"}]})", 9 * 512 + 512, 512 + 1024},
      {R"({"features": 20, "candidates": [{"op": "linear"}]})", 2.0 * 512 * 20 + 20, 512},
      {R"({"features": 20, "candidates": [{"op": "linear", "activation": "none"}]})",
       2.0 * 512 * 20, 512},
      {R"({"features": 20, "candidates": [{"op": "linear", "dropout": 0.5}]})",
       2.0 * 512 * 20 + 20 + 40, 512 + 40},
  };
  for (const OperatorCase& c : cases) {
    const Spec spec = SpecWith(c.block);
    const LayerCost cost = AnalyticCosts(BuildOrDie(spec), spec).layers.at(1);
    EXPECT_EQ(cost.forward, 4 * c.operations) << c.block;
    EXPECT_EQ(cost.backward, 2 * cost.forward) << c.block;
    EXPECT_EQ(cost.activation_bytes, 4 * 4 * c.kept) << c.block;
  }
}

TEST(CostsTest, CountsFeedForwardAndHead) {
  const Spec spec = SpecWith(
      R"({"features": 6, "candidates": [{"op": "linear"}]}, {"candidates": [{"op": "ffn", "hidden": 5}]})");
  const CostTable costs = AnalyticCosts(BuildOrDie(spec), spec);
  EXPECT_EQ(costs.layers.at(2).forward, 4 * (2.0 * 60 + 5));
  EXPECT_EQ(costs.layers.at(2).activation_bytes, 4 * 4 * (6 + 5));
  EXPECT_EQ(costs.layers.at(3).forward, 4 * (6 + 2.0 * 60 + 10));
  EXPECT_EQ(costs.layers.at(3).output_bytes, 4 * 4 * 10);
}

TEST(CostsTest, BytesAndUpdateFollowTheOptimizer) {
  struct Case {
    const char* optimizer;
    double operations;    ///< per parameter element
    std::int64_t states;  ///< per parameter element
  };
  const Case cases[] = {
      {R"({"kind": "sgd"})", 2, 0},
      {R"({"kind": "sgd", "momentum": 0.9})", 4, 1},
      {R"({"kind": "sgd", "momentum": 0.9, "nesterov": true, "weight_decay": 0.1})", 8, 1},
      {R"({"kind": "adam"})", 12, 2},
  };
  constexpr std::int64_t kParameters = 8 * 8 * 9 + 2 * 8;
  for (const Case& c : cases) {
    const Spec spec = SpecWith(R"({"candidates": [{"op": "conv"}]})", c.optimizer);
    const LayerCost cost = AnalyticCosts(BuildOrDie(spec), spec).layers.at(1);
    EXPECT_EQ(cost.update, c.operations * kParameters) << c.optimizer;
    EXPECT_EQ(cost.optimizer_bytes, 4 * c.states * kParameters) << c.optimizer;
    EXPECT_EQ(cost.parameter_bytes, 4 * (kParameters + 2 * 8)) << c.optimizer;
  }
  const Spec frozen =
      SpecWith(R"({"trainable": false, "candidates": [{"op": "conv"}]})", R"({"kind": "adam"})");
  const LayerCost cost = AnalyticCosts(BuildOrDie(frozen), frozen).layers.at(1);
  EXPECT_EQ(cost.update, 0);
  EXPECT_EQ(cost.optimizer_bytes, 0);
  EXPECT_GT(cost.parameter_bytes, 0);
}

TEST(CostsTest, EqualCostsAreOneAndTwoPerBlockAndBatch) {
  const Spec spec = SpecWith(R"({"candidates": [{"op": "conv"}, {"op": "skip"}]})");
  const SearchSpace space = BuildOrDie(spec);
  const CostTable costs = EqualCosts(space, spec);
  const CostTable analytic = AnalyticCosts(space, spec);
  ASSERT_EQ(costs.layers.size(), 4u);
  for (const Layer& layer : space.layers()) {
    const LayerCost& cost = costs.layers[static_cast<std::size_t>(layer.id)];
    const bool is_block = layer.name != "stem" && layer.name != "head";
    EXPECT_EQ(cost.forward, is_block ? 0.5 : 0.0) << layer.name;
    EXPECT_EQ(cost.backward, is_block ? 1.0 : 0.0) << layer.name;
    EXPECT_EQ(cost.update, 0.0) << layer.name;
    EXPECT_EQ(cost.activation_bytes,
              analytic.layers[static_cast<std::size_t>(layer.id)].activation_bytes);
  }
}

class CostFileTest : public ::testing::Test {
 protected:
  Result<CostTable> ReadText(const std::string& text, const Spec& spec) {
    std::ofstream(folder_ / "costs.json") << text;
    return ReadCosts(folder_ / "costs.json", BuildOrDie(spec), spec);
  }

  test::TemporaryFolder folder_;
  const Spec spec_ = SpecWith(R"({"candidates": [{"op": "conv"}, {"op": "mbconv"}]})");
};

TEST_F(CostFileTest, GivesEveryCostBack) {
  const SearchSpace space = BuildOrDie(spec_);
  CostTable costs = AnalyticCosts(space, spec_);
  for (const auto& table : {costs, EqualCosts(space, spec_)}) {
    const auto read = ReadText(CostsToJson(table, space, spec_), spec_);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, table);
  }
  costs.source = CostSource::kMeasured;
  costs.layers[1].forward = 0.1 + 0.2;  // has no short decimal form
  costs.layers[1].backward = 1e-7;
  const auto read = ReadText(CostsToJson(costs, space, spec_), spec_);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, costs);
}

TEST_F(CostFileTest, RefusesAnotherSpaceByItsFirstLayerThatDiffers) {
  const std::string text =
      CostsToJson(AnalyticCosts(BuildOrDie(spec_), spec_), BuildOrDie(spec_), spec_);
  struct Case {
    Spec spec;
    const char* message;
  };
  Spec other_batch = spec_;
  other_batch.training.batch = 16;
  const Case cases[] = {
      {SpecWith(R"({"candidates": [{"op": "conv"}, {"op": "mbconv", "kernel": 5}]})"),
       "costs.json: layer 2 is block0.1 (mbconv k3 e6, 8×8×8 to 8×8×8), but in \"small\" it is "
       "block0.1 (mbconv k5 e6, 8×8×8 to 8×8×8)"},
      {SpecWith(R"({"channels": 4, "candidates": [{"op": "conv"}, {"op": "mbconv"}]})"),
       "layer 1 is block0.0 (conv k3, 8×8×8 to 8×8×8), but in \"small\" it is block0.0 (conv k3, "
       "8×8×8 to 4×8×8)"},
      {SpecWith(R"({"candidates": [{"op": "conv"}, {"op": "mbconv"}, {"op": "conv"}]})"),
       "layer 3 is head (classifier, 8×8×8 to 10), but in \"small\" it is block0.2"},
      {other_batch, "holds costs of micro-batches of 4 rows, but those of \"small\" have 8"},
  };
  for (const Case& c : cases) {
    const auto read = ReadText(text, c.spec);
    ASSERT_FALSE(read.has_value()) << c.message;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(read.error().message, HasSubstr(c.message));
    EXPECT_THAT(read.error().hint, HasSubstr("verbatim profile"));
  }
}

TEST_F(CostFileTest, SaysWhatIsMalformedAndWhere) {
  const std::string good =
      CostsToJson(AnalyticCosts(BuildOrDie(spec_), spec_), BuildOrDie(spec_), spec_);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"", "costs.json:1:1"},
      {"[]", "costs.json:1:1"},
      {with("verbatim-costs", "other"), "is \"other\" version 1, not \"verbatim-costs\" version 1"},
      {with("\"version\": 1", "\"version\": 2"), "version 2"},
      {with("operation", "hour"), "unit: unknown value \"hour\""},
      {with("\"update\":", "\"updates\":"), "costs.json:3:"},
      {with("\"forward\":", "\"forward\":-"), "layers[0].forward"},
      {with("\"backward\":", "\"backward\":9999999999999999999"),
       "layers[0].backward: must be at least 0 and below 1e+18"},
      {with("\"activation_bytes\":", "\"activation_bytes\":0.5, \"x\":"), "layers[0]"},
      {good.substr(0, good.size() / 2), "costs.json:"},
      {R"({"format": "verbatim-costs", "version": 1, "unit": "block", "microbatch_rows": 4,
           "layers": []})",
       "holds 0 layers, but \"small\" has 4"},
  };
  for (const Case& c : cases) {
    const auto read = ReadText(c.text, spec_);
    ASSERT_FALSE(read.has_value()) << c.text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(read.error().message, HasSubstr(c.message));
  }
  const auto missing = ReadCosts(folder_ / "none.json", BuildOrDie(spec_), spec_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("the cost file cannot be read"));
}

}  // namespace
}  // namespace verbatim
