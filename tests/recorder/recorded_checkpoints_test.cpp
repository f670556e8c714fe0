// Checkpoints in a real record and its folder: what a row names is there, and nothing else.
#include "recorder/recorded_checkpoints.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT

EncodedTensors Tensors(const std::string& data) {
  StoredTensors content;
  content.tensors = {{"weight", DType::kUInt8, {std::ssize(data)}, data}};
  return EncodeSafetensors(content);
}

/// A checkpoint whose layers are all in one file.
CheckpointRow CheckpointAt(std::int64_t cut, const Hash256& file) {
  CheckpointRow row;
  row.cut = cut;
  row.layers.assign(kSampleLayers, {cut - 1, file});
  return row;
}

class RecordedCheckpointsTest : public ::testing::Test {
 protected:
  RecordedCheckpointsTest()
      : recorder_(Recorder::Start(CreateSample(path_))), folder_path_(CheckpointFolder(path_)) {}

  std::unique_ptr<RecordedCheckpoints> Open(std::int64_t keep,
                                            std::vector<CheckpointRow> rows = {}) {
    auto opened = RecordedCheckpoints::Open(path_, *recorder_, keep, std::move(rows));
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  std::vector<std::int64_t> RecordedCuts() const {
    std::vector<std::int64_t> cuts;
    const auto reader = RecordReader::Open(path_).value();
    const std::vector<CheckpointRow> rows = reader->Checkpoints().value();
    for (const CheckpointRow& row : rows) {
      EXPECT_FALSE(row.created_utc.empty());
      cuts.push_back(row.cut);
    }
    return cuts;
  }
  std::set<Hash256> Files() const {
    const auto files = ListCheckpointFiles(folder_path_).value();
    return {files.begin(), files.end()};
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "run.db";
  const std::unique_ptr<Recorder> recorder_;
  const std::filesystem::path folder_path_;
  const std::string texts_[4] = {"0", "1", "2", "3"};
};

TEST_F(RecordedCheckpointsTest, OnlyTheNewestStayWithTheirFiles) {
  const auto checkpoints = Open(2);
  std::vector<Hash256> files;
  for (int i = 0; i < 4; ++i) {
    files.push_back(checkpoints->WriteLayer(Tensors(texts_[i])).value());
    ASSERT_TRUE(checkpoints->WriteCheckpoint(CheckpointAt(10 * i, files.back())));
  }
  EXPECT_EQ(RecordedCuts(), (std::vector<std::int64_t>{20, 30}));
  EXPECT_EQ(Files(), (std::set<Hash256>{files[2], files[3]}));
  ASSERT_EQ(checkpoints->rows().size(), 2u);
  EXPECT_EQ(checkpoints->rows()[0].cut, 20);
}

TEST_F(RecordedCheckpointsTest, ACheckpointTakenAgainReplacesItsRow) {
  Hash256 first;
  {
    const auto checkpoints = Open(2);
    first = checkpoints->WriteLayer(Tensors(texts_[0])).value();
    ASSERT_TRUE(checkpoints->WriteCheckpoint(CheckpointAt(10, first)));
  }
  const auto rows = RecordReader::Open(path_).value()->Checkpoints().value();
  const auto checkpoints = Open(2, rows);
  EXPECT_EQ(Files(), std::set<Hash256>{first});
  const Hash256 second = checkpoints->WriteLayer(Tensors(texts_[1])).value();
  ASSERT_TRUE(checkpoints->WriteCheckpoint(CheckpointAt(10, second)));
  EXPECT_EQ(RecordedCuts(), std::vector<std::int64_t>{10});
  EXPECT_EQ(Files(), std::set<Hash256>{second});
}

TEST_F(RecordedCheckpointsTest, AFailedCommitKeepsEveryFile) {
  const auto checkpoints = Open(1);
  const Hash256 file = checkpoints->WriteLayer(Tensors(texts_[0])).value();
  ASSERT_TRUE(checkpoints->WriteCheckpoint(CheckpointAt(10, file)));
  ASSERT_TRUE(recorder_->AddSubnet(SampleSubnet(0)));
  ASSERT_TRUE(recorder_->AddSubnet(SampleSubnet(0)));  // recorded twice: the writer fails
  const Hash256 next = checkpoints->WriteLayer(Tensors(texts_[1])).value();
  EXPECT_FALSE(checkpoints->WriteCheckpoint(CheckpointAt(20, next)));
  EXPECT_EQ(Files(), (std::set<Hash256>{file, next}));
  EXPECT_EQ(RecordedCuts(), std::vector<std::int64_t>{10});
}

}  // namespace
}  // namespace verbatim
