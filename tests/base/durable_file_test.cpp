#include "base/durable_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status Write(const fs::path& path, std::vector<std::string_view> pieces) {
  return WriteDurably(path, pieces);
}

/// No file of this process may become longer than that, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(WriteDurablyTest, PiecesBecomeOneFileAndNothingElseStays) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(Write(folder / "a", {"one ", "", "two"}).has_value());
  EXPECT_EQ(ContentOf(folder / "a"), "one two");
  ASSERT_TRUE(Write(folder / "a", {}).has_value());
  EXPECT_EQ(ContentOf(folder / "a"), "");
  EXPECT_EQ(folder.Files(), std::vector<std::string>{"a"});
}

TEST(WriteDurablyTest, AFailureLeavesTheOldFileAndNoDraft) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(Write(folder / "a", {"old"}).has_value());
  const FileSizeLimit limit(1000);
  const Status written = Write(folder / "a", {std::string(600, 'x'), std::string(600, 'y')});
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind, ErrorKind::kFailed);
  EXPECT_NE(written.error().message.find((folder / "a").string()), std::string::npos);
  EXPECT_NE(written.error().message.find("File too large"), std::string::npos);
  EXPECT_NE(written.error().hint.find("ulimit"), std::string::npos);
  EXPECT_EQ(ContentOf(folder / "a"), "old");
  EXPECT_EQ(folder.Files(), std::vector<std::string>{"a"});
}

TEST(WriteDurablyTest, AMissingFolderIsSaid) {
  const test::TemporaryFolder folder;
  const Status written = Write(folder / "none" / "a", {"x"});
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().hint.find("folder"), std::string::npos);
}

TEST(DurableFileTest, AppendGoesOnWhereAFileEnds) {
  const test::TemporaryFolder folder;
  for (const char* line : {"1\n", "2\n"}) {
    auto file = DurableFile::Append(folder / "lines");
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(file->Write(line).has_value());
    EXPECT_TRUE(file->Sync().has_value());
    EXPECT_TRUE(file->Close().has_value());
  }
  EXPECT_EQ(ContentOf(folder / "lines"), "1\n2\n");
}

TEST(DurableFileTest, CreateReplacesWhatWasThere) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a") << "a longer text";
  auto file = DurableFile::Create(folder / "a");
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->Write("short").has_value());
  EXPECT_TRUE(file->Close().has_value());
  EXPECT_EQ(ContentOf(folder / "a"), "short");
}

TEST(DurableFileTest, CutLeavesTheFirstBytes) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a") << "0123456789";
  EXPECT_TRUE(CutFile(folder / "a", 10).has_value());
  EXPECT_EQ(ContentOf(folder / "a"), "0123456789");
  EXPECT_TRUE(CutFile(folder / "a", 4).has_value());
  EXPECT_EQ(ContentOf(folder / "a"), "0123");
  const Status missing = CutFile(folder / "b", 0);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kFailed);
}

TEST(FolderTest, AFolderThatExistsIsNoError) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(MakeFolder(folder / "a").has_value());
  EXPECT_TRUE(MakeFolder(folder / "a").has_value());
  EXPECT_TRUE(fs::is_directory(folder / "a"));
  std::ofstream(folder / "b") << "no folder";
  const Status made = MakeFolder(folder / "b");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::kFailed);
}

TEST(RemoveFileTest, AFileThatIsMissingIsNoError) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a") << "x";
  EXPECT_TRUE(RemoveFile(folder / "a").has_value());
  EXPECT_TRUE(RemoveFile(folder / "a").has_value());
  EXPECT_TRUE(folder.Files().empty());
}

}  // namespace
}  // namespace verbatim
