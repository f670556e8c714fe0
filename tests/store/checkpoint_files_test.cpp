#include "store/checkpoint_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "store/merkle.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

/// A file of one tensor.
EncodedTensors Tensors(const std::string& data) {
  StoredTensors content;
  content.tensors = {{"weight", DType::kUInt8, {std::ssize(data)}, data}};
  return EncodeSafetensors(content);
}

class CheckpointFilesTest : public ::testing::Test {
 protected:
  CheckpointFiles Open() {
    auto files = CheckpointFiles::Open(folder_ / "checkpoints");
    EXPECT_TRUE(files.has_value()) << files.error().message;
    return *files;
  }
  fs::path PathOf(const Hash256& file) const {
    return folder_ / "checkpoints" / CheckpointFileName(file);
  }
  std::vector<Hash256> Listed() const {
    auto files = ListCheckpointFiles(folder_ / "checkpoints").value();
    std::sort(files.begin(), files.end());
    return files;
  }

  const test::TemporaryFolder folder_;
  const std::string a_ = "one";
  const std::string b_ = "another";
};

TEST_F(CheckpointFilesTest, AFileBearsItsHashAndIsReadBack) {
  CheckpointFiles files = Open();
  const EncodedTensors tensors = Tensors(a_);
  const Hash256 file = files.Write(tensors).value();
  std::string expected = tensors.header + a_;
  EXPECT_EQ(file, Blake2b(expected));
  EXPECT_EQ(ReadCheckpointFile(files.folder(), file).value(), expected);
  EXPECT_EQ(Listed(), std::vector<Hash256>{file});
}

TEST_F(CheckpointFilesTest, AFolderThatIsMissingHoldsNone) {
  EXPECT_TRUE(Listed().empty());
  EXPECT_TRUE(RemoveCheckpoints(folder_ / "checkpoints").has_value());
}

TEST_F(CheckpointFilesTest, DamageAndLossAreBadInput) {
  CheckpointFiles files = Open();
  const Hash256 file = files.Write(Tensors(a_)).value();
  const auto size = static_cast<std::streamoff>(fs::file_size(PathOf(file)));
  for (std::streamoff at = 0; at < size; ++at) {
    std::fstream stream(PathOf(file), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
    stream.close();
    const auto read = ReadCheckpointFile(files.folder(), file);
    ASSERT_FALSE(read.has_value()) << "byte " << at;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(read.error().message.find("damaged"), std::string::npos);
    EXPECT_EQ(files.Write(Tensors(a_)).value(), file);  // heals it
    ASSERT_TRUE(ReadCheckpointFile(files.folder(), file).has_value());
  }
  fs::resize_file(PathOf(file), static_cast<std::uintmax_t>(size) - 1);
  EXPECT_FALSE(ReadCheckpointFile(files.folder(), file).has_value());
  fs::remove(PathOf(file));
  const auto missing = ReadCheckpointFile(files.folder(), file);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  fs::create_directory(PathOf(file));
  EXPECT_EQ(ReadCheckpointFile(files.folder(), file).error().kind, ErrorKind::kBadInput);
}

TEST_F(CheckpointFilesTest, OnlyFilesThatARowNamesStay) {
  CheckpointFiles files = Open();
  const Hash256 a = files.Write(Tensors(a_)).value();
  const Hash256 b = files.Write(Tensors(b_)).value();
  std::ofstream(files.folder() / "notes.txt") << "mine";
  const CheckpointRow first{8, "", {{3, a}, {-1, b}}};
  ASSERT_TRUE(files.RemoveUnnamed(std::span(&first, 1)).has_value());
  EXPECT_EQ(Listed().size(), 2u);
  const CheckpointRow second{16, "", {{-1, b}, {-1, b}}};
  ASSERT_TRUE(files.RemoveUnnamed(std::span(&second, 1)).has_value());
  EXPECT_EQ(Listed(), std::vector<Hash256>{b});
  EXPECT_TRUE(fs::exists(files.folder() / "notes.txt"));
  EXPECT_FALSE(fs::exists(PathOf(a)));
}

TEST_F(CheckpointFilesTest, FilesOfACheckpointToComeStay) {
  Open().Write(Tensors("left over")).value();
  CheckpointFiles files = Open();
  const Hash256 a = files.Write(Tensors(a_)).value();
  const Hash256 next = files.Write(Tensors(b_)).value();
  const CheckpointRow row{8, "", {{3, a}}};
  ASSERT_TRUE(files.RemoveUnnamed(std::span(&row, 1)).has_value());
  EXPECT_TRUE(fs::exists(PathOf(a)));
  EXPECT_TRUE(fs::exists(PathOf(next)));
  EXPECT_EQ(Listed().size(), 2u);
}

TEST_F(CheckpointFilesTest, WhatAnInterruptedWriteLeftGoesAway) {
  const Hash256 a = Open().Write(Tensors(a_)).value();
  const fs::path partial = PathOf(a).string() + ".partial";
  std::ofstream(partial) << "half";
  Open();
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_EQ(Listed(), std::vector<Hash256>{a});
}

TEST_F(CheckpointFilesTest, RemovingCheckpointsKeepsWhatIsNoneOfThem) {
  CheckpointFiles files = Open();
  files.Write(Tensors(a_)).value();
  std::ofstream(files.folder() / "notes.txt") << "mine";
  ASSERT_TRUE(RemoveCheckpoints(files.folder()).has_value());
  EXPECT_TRUE(Listed().empty());
  EXPECT_TRUE(fs::exists(files.folder() / "notes.txt"));
  fs::remove(files.folder() / "notes.txt");
  ASSERT_TRUE(RemoveCheckpoints(files.folder()).has_value());
  EXPECT_FALSE(fs::exists(files.folder()));
}

TEST_F(CheckpointFilesTest, AFolderThatCannotBeMadeIsFailed) {
  std::ofstream(folder_ / "checkpoints") << "no folder";
  const auto files = CheckpointFiles::Open(folder_ / "checkpoints");
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().kind, ErrorKind::kFailed);
}

TEST_F(CheckpointFilesTest, TheFolderIsBesideTheRecord) {
  std::ofstream(folder_ / "run.db") << "";
  fs::create_symlink(folder_ / "run.db", folder_ / "link.db");
  const fs::path real = fs::canonical(folder_ / "run.db");
  EXPECT_EQ(CheckpointFolder(folder_ / "run.db"), real.string() + ".checkpoints");
  EXPECT_EQ(CheckpointFolder(folder_ / "link.db"), real.string() + ".checkpoints");
  EXPECT_EQ(CheckpointFolder(folder_ / "none.db").filename(), "none.db.checkpoints");
}

}  // namespace
}  // namespace verbatim
