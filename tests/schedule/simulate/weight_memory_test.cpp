// Which version an access sees, and what versions occupy.
#include "schedule/simulate/weight_memory.h"

#include <gtest/gtest.h>

#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

/// Layers of 10 bytes with 5 of optimizer state, on two stages: the head is alone on stage 1.
class WeightMemoryTest : public ::testing::Test {
 protected:
  explicit WeightMemoryTest(std::int64_t delay = 0)
      : space_(MakeTestSpace(/*blocks=*/1, /*candidates=*/1, /*trained_ends=*/true, delay)),
        costs_{.source = CostSource::kEqual,
               .layers = std::vector<LayerCost>(
                   space_.layers().size(), LayerCost{.parameter_bytes = 10, .optimizer_bytes = 5})},
        memory_(space_, costs_, StageRanges({0, 2, 3})) {}

  const SearchSpace space_;
  const CostTable costs_;
  WeightMemory memory_;
};

class DelayedWeightMemoryTest : public WeightMemoryTest {
 protected:
  DelayedWeightMemoryTest() : WeightMemoryTest(/*delay=*/2) {}
};

TEST_F(WeightMemoryTest, InitialWeightsLiveAtHome) {
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15) << "stem, one linear layer, one skip";
  EXPECT_EQ(memory_.peak_bytes(1), 15);
}

TEST_F(WeightMemoryTest, AnUpdateOverwritesInPlace) {
  EXPECT_EQ(memory_.Read(0, 0), -1);
  EXPECT_EQ(memory_.Update(0, 0, -1, /*stage=*/0, 0), -1);
  EXPECT_EQ(memory_.Read(0, 1), 0);
  EXPECT_EQ(memory_.Update(0, 1, 0, 0, 1), 0);
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15);
}

TEST_F(WeightMemoryTest, AVersionStaysAsLongAsASubnetUnderWayHasReadIt) {
  EXPECT_EQ(memory_.Read(0, 0), -1);
  EXPECT_EQ(memory_.Read(0, 1), -1);
  EXPECT_EQ(memory_.Update(0, 0, -1, 0, 0), -1);
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15 + 10);
  EXPECT_EQ(memory_.Read(0, 2), 0);
  EXPECT_EQ(memory_.Update(0, 1, -1, 0, 1), 0) << "its base is newer than what it read";
  EXPECT_EQ(memory_.Update(0, 2, 0, 0, 2), 1);
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15 + 10) << "never more than two versions at a time";
}

TEST_F(WeightMemoryTest, MovingTakesTheStateAlong) {
  memory_.MoveNewest(0, 1);
  EXPECT_EQ(memory_.peak_bytes(1), 2 * 15);
  memory_.AddCopy(1, 1);
  EXPECT_EQ(memory_.peak_bytes(1), 2 * 15 + 10);
  memory_.DropCopy(1, 1);
  EXPECT_EQ(memory_.Read(0, 0), -1);
  EXPECT_EQ(memory_.Update(0, 0, -1, 1, 0), -1);
  EXPECT_EQ(memory_.peak_bytes(1), 2 * 15 + 10);
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15);
}

TEST_F(DelayedWeightMemoryTest, ADelayKeepsVersionsThatMayStillBeRead) {
  // Subnet j reads what those below j - 2 wrote.
  const std::int64_t seen[] = {-1, -1, -1, 0, 1, 2};
  for (std::int64_t seq = 0; seq < 6; ++seq) {
    EXPECT_EQ(memory_.Read(0, seq), seen[seq]) << seq;
    EXPECT_EQ(memory_.Update(0, seq, seen[seq], 0, seq), seq - 1);
  }
  EXPECT_EQ(memory_.peak_bytes(0), 3 * 15 + 3 * 10);
}

}  // namespace
}  // namespace verbatim
