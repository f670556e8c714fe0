// The causal critical path, by hand on small streams.
#include "schedule/simulate/causal_bound.h"

#include <gtest/gtest.h>

#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

/// Every layer takes 1 forward, 2 backward and 0.5 for its update.
class CausalBoundTest : public ::testing::Test {
 protected:
  double Length(const SearchSpace& space, const std::vector<std::vector<std::uint16_t>>& stream,
                std::int32_t microbatches = 1, double last = 1.0) {
    const CostTable costs{
        .source = CostSource::kEqual,
        .layers = std::vector<LayerCost>(
            space.layers().size(), LayerCost{.forward = 1.0, .backward = 2.0, .update = 0.5})};
    CausalBound bound(space, costs, microbatches, last);
    CausalGraph graph(space);
    for (std::size_t seq = 0; seq < stream.size(); ++seq) {
      std::vector<std::int32_t> layers;
      for (int position = 0; position < space.positions(); ++position) {
        layers.push_back(space.LayerAt(position, stream[seq]).id);
      }
      const auto at = static_cast<std::int64_t>(seq);
      bound.Add(at, layers, graph.Add(at, stream[seq]));
    }
    return bound.length();
  }
};

TEST_F(CausalBoundTest, OneSubnetPassesAllLayersTwice) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/1, /*candidates=*/2, /*trained_ends=*/false);
  // Three layers; the ends have no update: 3 + 3 · 2, and the block's update hides behind the stem.
  EXPECT_DOUBLE_EQ(Length(space, {{0}}), 9.0);
}

TEST_F(CausalBoundTest, SubnetsThatShareNothingOverlapWholly) {
  const SearchSpace space = MakeTestSpace(1, 3, false);
  EXPECT_DOUBLE_EQ(Length(space, {{0}, {1}, {2}}), 9.0);
  // The skip is not versioned: sharing it orders nothing.
  EXPECT_DOUBLE_EQ(Length(space, {{3}, {3}, {3}}), 9.0);
}

TEST_F(CausalBoundTest, ASharedLayerIsReadOnceItIsWritten) {
  const SearchSpace space = MakeTestSpace(1, 2, false);
  // Stem 1, block 2, head 3, 5, block 7, written at 7.5; then block, head, head, block, stem.
  EXPECT_DOUBLE_EQ(Length(space, {{0}, {0}}), 7.5 + 1 + 1 + 2 + 2 + 2);
}

TEST_F(CausalBoundTest, SharedEndsMakeTheStreamSerial) {
  const SearchSpace space = MakeTestSpace(1, 2, true);
  EXPECT_DOUBLE_EQ(Length(space, {{0}, {1}, {0}}), 3 * 9.5);
}

TEST_F(CausalBoundTest, ADelayLetsThemOverlap) {
  const SearchSpace space = MakeTestSpace(1, 4, true, /*delay=*/1);
  // Subnets 0 and 1 begin at once, and their updates come one after another; 2 reads what 0 wrote.
  EXPECT_DOUBLE_EQ(Length(space, {{0}, {1}}), 9 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(Length(space, {{0}, {1}, {2}}), 9.5 + 9.5);
}

TEST_F(CausalBoundTest, MicrobatchesPipelineOverLayers) {
  const SearchSpace space = MakeTestSpace(1, 2, false);
  // The head begins at 2 and has done both micro-batches, 2 · (1 + 2), at 8; the block's last
  // backward ends at 10, the stem's at 12.
  EXPECT_DOUBLE_EQ(Length(space, {{0}}, /*microbatches=*/2), 12.0);
  // A last micro-batch of half the rows: 2 + 1.5 · 3 + 1, and the stem has done its own 1 + 1
  // later.
  EXPECT_DOUBLE_EQ(Length(space, {{0}}, 2, 0.5), 10.0);
}

}  // namespace
}  // namespace verbatim
