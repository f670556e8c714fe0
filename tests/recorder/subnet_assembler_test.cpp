// Proves that interleaved events of many subnets become whole rows in a record's order.
#include "recorder/subnet_assembler.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <thread>

#include "recorder/content_digest.h"

namespace verbatim {
namespace {

Digest DigestOf(int value) {
  Digest digest;
  digest.bytes[15] = static_cast<std::uint8_t>(value);
  return digest;
}

class SubnetAssemblerTest : public ::testing::Test {
 protected:
  std::vector<SubnetRow> rows_;
  SubnetAssembler assembler_{[this](SubnetRow&& row) -> Status {
    rows_.push_back(std::move(row));
    return {};
  }};
};

TEST_F(SubnetAssemblerTest, TwoSubnetsInterleaved) {
  assembler_.OnSubnetStarted(4, {1, 2}, {10, 11});
  assembler_.OnSubnetStarted(5, {3}, {12});
  assembler_.OnBatch(5, DigestOf(5));
  assembler_.OnBatch(4, DigestOf(4));
  assembler_.OnAccess(4, {.layer = 9, .read_seq = 1});
  assembler_.OnAccess(5, {.layer = 7, .read_seq = 2});
  assembler_.OnLoss(4, 1.5f);
  assembler_.OnLoss(5, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(assembler_.OnSubnetFinished(5));
  ASSERT_TRUE(assembler_.OnSubnetFinished(4));
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_EQ(rows_[0].seq, 5);
  EXPECT_EQ(rows_[0].choices, std::vector<std::uint16_t>{3});
  EXPECT_EQ(rows_[0].samples, std::vector<std::uint32_t>{12});
  EXPECT_EQ(rows_[0].batch_digest, DigestOf(5));
  EXPECT_EQ(rows_[0].loss_bits, 0x7fc00000u);
  EXPECT_EQ(rows_[0].accesses.at(0).layer, 7);
  EXPECT_EQ(rows_[1].seq, 4);
  EXPECT_EQ(rows_[1].loss_bits, 0x3fc00000u);
  EXPECT_EQ(rows_[1].accesses.at(0).layer, 9);
}

TEST_F(SubnetAssemblerTest, RowsAreSortedByTheirKeys) {
  assembler_.OnSubnetStarted(0, {}, {});
  for (const int layer : {5, 1, 3}) assembler_.OnAccess(0, {.layer = layer});
  for (const auto& [microbatch, position] : {std::pair{1, 0}, {0, 2}, {0, 1}}) {
    assembler_.OnActivation(0, {microbatch, position, DigestOf(position)});
  }
  assembler_.OnActivity(0, {1, 0, Phase::kForward, 0, 1});
  assembler_.OnActivity(0, {0, 1, Phase::kForward, 0, 1});
  assembler_.OnActivity(0, {0, 0, Phase::kUpdate, 0, 1});
  assembler_.OnActivity(0, {0, 0, Phase::kBackward, 9, 10});
  assembler_.OnActivity(0, {0, 0, Phase::kBackward, 3, 4});
  ASSERT_TRUE(assembler_.OnSubnetFinished(0));
  std::string order;
  for (const auto& row : rows_.at(0).accesses) order += std::to_string(row.layer) + " ";
  for (const auto& row : rows_.at(0).activations) {
    order += std::to_string(row.microbatch) + std::to_string(row.position) + " ";
  }
  for (const auto& row : rows_.at(0).activities) order += std::to_string(row.begin_ns) + " ";
  EXPECT_EQ(order, "1 3 5 01 02 10 3 9 0 0 0 ");
  EXPECT_EQ(rows_.at(0).content_leaf, ContentLeaf(rows_.at(0)));
  EXPECT_EQ(rows_.at(0).layout_leaf, LayoutLeaf(rows_.at(0)));
}

TEST_F(SubnetAssemblerTest, SinksErrorIsReturned) {
  SubnetAssembler assembler([](SubnetRow&&) -> Status { return Failed("full", "free space"); });
  assembler.OnSubnetStarted(0, {}, {});
  const Status status = assembler.OnSubnetFinished(0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "full");
}

TEST_F(SubnetAssemblerTest, WrongOrderOfCallsIsAProgrammersMistake) {
  EXPECT_DEATH(assembler_.OnLoss(3, 0), "subnet 3, which is not under way");
  EXPECT_DEATH(static_cast<void>(assembler_.OnSubnetFinished(3)), "subnet 3");
  assembler_.OnSubnetStarted(3, {}, {});
  EXPECT_DEATH(assembler_.OnSubnetStarted(3, {}, {}), "subnet 3 was started twice");
}

// Stages report on the same subnet at once.
TEST_F(SubnetAssemblerTest, ManyThreadsPerSubnet) {
  constexpr int kThreads = 4, kSubnets = 50, kAccesses = 20;
  for (int seq = 0; seq < kSubnets; ++seq) assembler_.OnSubnetStarted(seq, {}, {});
  std::vector<std::thread> stages;
  for (int stage = 0; stage < kThreads; ++stage) {
    stages.emplace_back([&, stage] {
      for (int seq = 0; seq < kSubnets; ++seq) {
        for (int i = 0; i < kAccesses; ++i) {
          assembler_.OnAccess(seq, {.layer = i * kThreads + stage, .read_seq = seq});
        }
      }
    });
  }
  for (std::thread& stage : stages) stage.join();
  for (int seq = 0; seq < kSubnets; ++seq) {
    ASSERT_TRUE(assembler_.OnSubnetFinished(seq));
    const auto& accesses = rows_.back().accesses;
    ASSERT_EQ(accesses.size(), std::size_t{kThreads * kAccesses});
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      EXPECT_EQ(accesses[i].layer, static_cast<int>(i));
      EXPECT_EQ(accesses[i].read_seq, seq);
    }
  }
}

}  // namespace
}  // namespace verbatim
