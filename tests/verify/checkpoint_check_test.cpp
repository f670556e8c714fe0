// Proves that checkpoints are compared with what their record says: files, digests and versions.
#include "verify/checkpoint_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "store/checkpoint_files.h"
#include "tests/temporary_folder.h"
#include "tests/verify/sample_checkpoints.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointCheckTest : public ::testing::Test {
 protected:
  CheckpointCheckTest() {
    UseDigestsOfContents(sample_);
    for (const std::int64_t cut : {5, 12})
      checkpoints_.push_back(TakeCheckpoint(sample_, cut, folder_ / "c"));
  }

  Hash256 Write(const LayerContent& content) {
    return CheckpointFiles::Open(folder_ / "c")
        ->Write(EncodeSafetensors(content.Tensors()))
        .value();
  }
  Check Run() {
    const LayerTable table = LayerTable::Build(sample_.layers).value();
    CheckpointCheck check(table, checkpoints_, folder_ / "c");
    for (const SubnetRow& subnet : sample_.subnets) check.Add(subnet);
    Check result = check.Finish();
    unsound_.clear();
    for (const auto& [cut, problem] : check.unsound()) unsound_.push_back(cut);
    return result;
  }
  /// The first problem, which must be damage.
  std::string Problem() {
    const Check check = Run();
    EXPECT_EQ(check.outcome, Outcome::kFailed);
    EXPECT_TRUE(check.damage);
    return check.problems.empty() ? "" : check.problems.front();
  }
  std::filesystem::path PathOf(std::size_t checkpoint, std::int32_t layer) const {
    return folder_ / "c" / CheckpointFileName(checkpoints_[checkpoint].layers[layer].file);
  }

  const test::TemporaryFolder folder_;
  SampleRun sample_ = MakeSampleRun();
  std::vector<CheckpointRow> checkpoints_;
  std::vector<std::int64_t> unsound_;  ///< cuts, of the last run
};

TEST_F(CheckpointCheckTest, SoundCheckpointsPass) {
  const Check check = Run();
  EXPECT_EQ(check.outcome, Outcome::kPassed);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_THAT(check.detail, HasSubstr("2 checkpoints"));
  EXPECT_THAT(unsound_, IsEmpty());
}

TEST_F(CheckpointCheckTest, WithoutCheckpointsThereIsNothingToFind) {
  checkpoints_.clear();
  const Check check = Run();
  EXPECT_EQ(check.outcome, Outcome::kPassed);
  EXPECT_EQ(check.detail, "the record has none");
}

TEST_F(CheckpointCheckTest, AFolderThatIsGoneIsOnlyNoted) {
  std::filesystem::remove_all(folder_ / "c");
  const Check check = Run();
  EXPECT_EQ(check.outcome, Outcome::kNotRun);
  EXPECT_FALSE(check.damage);
  EXPECT_THAT(check.detail, HasSubstr("is not there"));
}

TEST_F(CheckpointCheckTest, EveryFlippedBitOfAFileIsFound) {
  const std::filesystem::path path = PathOf(0, 1);
  const std::string good =
      ReadCheckpointFile(folder_ / "c", checkpoints_[0].layers[1].file).value();
  for (std::size_t at = 0; at < good.size(); at += 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THAT(Problem(), HasSubstr("is damaged")) << "byte " << at;
  }
}

TEST_F(CheckpointCheckTest, ALostFileIsFound) {
  std::filesystem::remove(PathOf(1, 2));
  EXPECT_THAT(Problem(), HasSubstr("is missing"));
}

TEST_F(CheckpointCheckTest, OtherTensorsUnderAHashOfTheirOwnAreFound) {
  LayerContent weights(sample_.layers[1], checkpoints_[1].layers[1].version);
  weights.weight[0] = 99;
  checkpoints_[1].layers[1].file = Write(weights);
  EXPECT_THAT(Problem(), HasSubstr("other weights than were recorded"));
  EXPECT_THAT(unsound_, ElementsAre(12));
  LayerContent step(sample_.layers[1], checkpoints_[1].layers[1].version);
  step.step = 99;
  checkpoints_[1].layers[1].file = Write(step);
  EXPECT_THAT(Problem(), HasSubstr("other optimizer state than were recorded"));
}

TEST_F(CheckpointCheckTest, AnotherVersionIsFound) {
  checkpoints_[1].layers[0] = checkpoints_[0].layers[0];
  EXPECT_THAT(Problem(), HasSubstr("the checkpoint at 12 has stem at version 4 instead of 11"));
  EXPECT_THAT(unsound_, ElementsAre(12));
}

TEST_F(CheckpointCheckTest, AnotherLayersFileIsFound) {
  checkpoints_[0].layers[1].file = checkpoints_[0].layers[0].file;
  EXPECT_THAT(Problem(), HasSubstr("holds stem"));
  EXPECT_THAT(unsound_, ElementsAre(5));
}

TEST_F(CheckpointCheckTest, ACheckpointOfMissingSubnetsIsFound) {
  sample_.subnets.erase(sample_.subnets.begin() + 3);
  EXPECT_THAT(Problem(), HasSubstr("subnet 3 is missing"));
}

TEST_F(CheckpointCheckTest, TooFewLayersAreFound) {
  checkpoints_[0].layers.pop_back();
  EXPECT_THAT(Problem(), HasSubstr("layers of"));
}

}  // namespace
}  // namespace verbatim
