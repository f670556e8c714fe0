// Each kind of damage changes what it says and nothing else.
#include "store/record_fault.h"

#include <gtest/gtest.h>

#include "tests/store/sample_record.h"

namespace verbatim::test {
namespace {

class RecordFaultTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteSample(path_, SampleSubnets(5)); }

  std::vector<SubnetRow> Subnets() {
    const auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader.has_value());
    EXPECT_EQ((*reader)->IntegrityProblems().value(), std::vector<std::string>{});
    return ReadSubnets(**reader).value();
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "run.db";
};

TEST_F(RecordFaultTest, ARewrittenRowDiffersInOneBitOfOneDigest) {
  ASSERT_TRUE(RewriteAccessRow(path_, 3, 1).has_value());
  const std::vector<SubnetRow> subnets = Subnets();
  ASSERT_EQ(subnets.size(), 5u);
  for (const SubnetRow& subnet : subnets) {
    const SubnetRow before = SampleSubnet(subnet.seq);
    for (std::size_t i = 0; i < subnet.accesses.size(); ++i) {
      auto expected = before.accesses[i].weights;
      if (subnet.seq == 3 && i == 1) expected->bytes[0] ^= 1;
      EXPECT_EQ(subnet.accesses[i].weights, expected) << subnet.seq << ", " << i;
      EXPECT_EQ(subnet.accesses[i].optimizer_state, before.accesses[i].optimizer_state);
      EXPECT_EQ(subnet.accesses[i].read_seq, before.accesses[i].read_seq);
    }
  }
}

TEST_F(RecordFaultTest, ADeletedSubnetLeavesNoRowBehind) {
  ASSERT_TRUE(DeleteSubnetRow(path_, 2).has_value());
  const std::vector<SubnetRow> subnets = Subnets();
  ASSERT_EQ(subnets.size(), 4u);
  const std::int64_t left[] = {0, 1, 3, 4};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(subnets[i].seq, left[i]);
    EXPECT_EQ(subnets[i].accesses.size(), 3u);
    EXPECT_EQ(subnets[i].activities.size(), 3u);
    EXPECT_EQ(subnets[i].activations.size(), 2u);
  }
}

TEST_F(RecordFaultTest, ACutFileCannotBeReadAsARecord) {
  const auto size = std::filesystem::file_size(path_);
  ASSERT_TRUE(TruncateFile(path_).has_value());
  EXPECT_EQ(std::filesystem::file_size(path_), size / 2);
  const auto reader = RecordReader::Open(path_);
  const bool is_found =
      !reader || !(*reader)->IntegrityProblems() || !(*reader)->IntegrityProblems()->empty();
  EXPECT_TRUE(is_found);
}

TEST_F(RecordFaultTest, WhatIsNotThereCannotBeDamaged) {
  const std::string before = ReadFile(path_);
  EXPECT_EQ(RewriteAccessRow(path_, 9, 1).error().kind, ErrorKind::kFailed);
  EXPECT_EQ(RewriteAccessRow(path_, 3, 2).error().kind, ErrorKind::kFailed);  // without digests
  EXPECT_EQ(DeleteSubnetRow(path_, 9).error().kind, ErrorKind::kFailed);
  EXPECT_EQ(ReadFile(path_), before);
  EXPECT_EQ(TruncateFile(folder_ / "none.db").error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace verbatim::test
