// What ranks have to send at the least: by hand on a small stream, and against simulated runs.
#include "schedule/rank_traffic.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/schedule/moving_partition.h"
#include "tests/schedule/ranks/rank_simulation.h"

namespace verbatim {
namespace {

/// On MovingPartition's space and two ranks of one stage.
class RankTrafficTest : public ::testing::Test {
 protected:
  /// Bytes: activations 10 of the stem and 1 of other layers, weights 100, optimizer state 1,000.
  static CostTable Costs(const SearchSpace& space) {
    CostTable costs;
    costs.layers.assign(
        space.layers().size(),
        LayerCost{.output_bytes = 1, .parameter_bytes = 100, .optimizer_bytes = 1000});
    costs.layers[0].output_bytes = 10;
    return costs;
  }

  struct Counted {
    MovedBytes bytes;
    std::int64_t versions = 0;
  };
  static Counted Count(const SearchSpace& space, const std::vector<Choices>& stream) {
    const MovingPartition partition;
    const CostTable costs = Costs(space);
    RankTraffic traffic(space, costs, partition, *Placement::Make(2, 2), /*microbatches=*/3,
                        /*last_microbatch=*/0.5);
    for (std::size_t seq = 0; seq < stream.size(); ++seq) {
      traffic.Add(static_cast<std::int64_t>(seq), stream[seq]);
    }
    return {traffic.bytes(), traffic.versions()};
  }

  const Choices on_0_ = {0, 1};
  const Choices on_1_ = {0, 0};
};

TEST_F(RankTrafficTest, ActivationsCrossOncePerMicrobatchAndGradientsWhereTheyAreNeeded) {
  const SearchSpace trained = MakeTestSpace(2, 1, /*trained_ends=*/true);
  EXPECT_EQ(Count(trained, {on_1_}).bytes, (MovedBytes{.activations = 25, .gradients = 25}));
  const SearchSpace frozen = MakeTestSpace(2, 1, /*trained_ends=*/false);
  EXPECT_EQ(Count(frozen, {on_1_}).bytes, (MovedBytes{.activations = 25}))
      << "nothing is trained before the boundary";
  EXPECT_EQ(Count(frozen, {on_0_}).bytes, (MovedBytes{.activations = 3, .gradients = 3}));
}

TEST_F(RankTrafficTest, ALayerTravelsWhenItIsUpdatedElsewhere) {
  const SearchSpace space = MakeTestSpace(2, 1, /*trained_ends=*/false);
  EXPECT_EQ(Count(space, {on_0_, on_0_}).versions, 0);
  EXPECT_EQ(Count(space, {on_0_, on_1_, on_1_, on_0_}).versions, 2);
  EXPECT_EQ(Count(space, {on_0_, on_1_, on_1_, on_0_}).bytes.versions, 2 * 1100);
}

TEST_F(RankTrafficTest, WhatIsReadLateTravelsAsWeights) {
  const SearchSpace space = MakeTestSpace(2, 1, /*trained_ends=*/false, /*delay=*/1);
  // Subnet 2 reads version 0 and updates version 1, both of rank 0.
  const Counted counted = Count(space, {on_0_, on_0_, on_1_});
  EXPECT_EQ(counted.versions, 2);
  EXPECT_EQ(counted.bytes.versions, 1100 + 100);
  // Subnet 3 reads version 1, which its rank has had since subnet 2 updated it.
  EXPECT_EQ(Count(space, {on_0_, on_0_, on_1_, on_1_}).versions, 2);
}

TEST_F(RankTrafficTest, NoRunSendsFewerVersionsAndWithoutDelaysNoneSendsMore) {
  int without_delay = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ranks_test::RankCase drawn = ranks_test::DrawCase(seed);
    SCOPED_TRACE(drawn.description);
    const CostTable costs = Costs(*drawn.space);
    RankTraffic traffic(*drawn.space, costs, *drawn.partition, drawn.placement,
                        drawn.options.microbatches, /*last_microbatch=*/1.0);
    for (const std::int64_t seq : drawn.sequence) traffic.Add(seq, ChoicesOf(drawn, seq));
    bool has_delay = false;
    for (const Layer& layer : drawn.space->layers()) has_delay |= layer.delay > 0;
    const std::int64_t sent = ranks_test::RankSimulation(std::move(drawn)).Run().versions_sent;
    EXPECT_LE(traffic.versions(), sent);
    if (has_delay) continue;
    EXPECT_EQ(traffic.versions(), sent);
    without_delay += sent > 0;
  }
  EXPECT_GT(without_delay, 0);
}

}  // namespace
}  // namespace verbatim
