// Proves that a data file's content arrives whole or not at all, plain or gzipped, across buffer
// boundaries, and that each kind of gzip damage is named.
#include "trainer/data/data_file.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/trainer/data/data_testing.h"

namespace verbatim {
namespace {

using DataFileTest = DataTest;

/// The whole content, in reads of `piece` bytes.
Result<std::string> ReadAll(const std::filesystem::path& path, std::size_t piece = 4096) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  std::string content;
  std::vector<std::uint8_t> buffer(piece);
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, file.Read(buffer));
    content.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < piece) return content;
  }
}

/// Bytes that compress a little, of every value.
std::string Mixed(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * i / 7 + i % 3);
  return content;
}

TEST_F(DataFileTest, SameContentPlainAndGzippedWhateverTheSizes) {
  for (const std::size_t size : {0, 1, 2, 65535, 65536, 65537, 300000}) {
    const std::string content = Mixed(size);
    for (const std::size_t piece : {7, 65536, 1000000}) {
      EXPECT_EQ(ReadAll(Write("plain", content), piece), content) << size << " by " << piece;
      EXPECT_EQ(ReadAll(Write("gzipped", Gzip(content)), piece), content)
          << size << " by " << piece;
    }
  }
}

TEST_F(DataFileTest, HighlyCompressedContentOutgrowsItsInput) {
  const std::string zeros(5000000, '\0');
  EXPECT_EQ(ReadAll(Write("zeros", Gzip(zeros)), 1000), zeros);
}

TEST_F(DataFileTest, GzipMembersFollowEachOther) {
  EXPECT_EQ(ReadAll(Write("two", Gzip("first ") + Gzip("") + Gzip("second"))), "first second");
}

TEST_F(DataFileTest, GzipCutAtEveryLengthIsAnError) {
  const std::string whole = Gzip(Mixed(500));
  for (std::size_t length = 2; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    ExpectBadInput(ReadAll(Write("cut.gz", whole.substr(0, length))), "gzip data is cut short",
                   "cut.gz");
  }
}

TEST_F(DataFileTest, GzipDamageIsNamed) {
  const std::string good = Gzip("some content");
  const auto flipped = [&](std::size_t from_end) {
    std::string bad = good;
    bad[bad.size() - from_end] ^= 1;
    return bad;
  };
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {flipped(8), "damaged gzip data (incorrect data check)"},
      {flipped(4), "damaged gzip data (incorrect length check)"},
      {"\x1f\x8b\x07"s + good.substr(3), "damaged gzip data (unknown compression method)"},
      {good + "x", "other bytes follow the gzip data"},
      {good + "\0\0\0"s, "other bytes follow the gzip data"},
      {good + "\x1f\x8cgarbage", "damaged gzip data (incorrect header check)"},
      {good + "garbage", "other bytes follow the gzip data"},
      {good + good.substr(0, 9), "gzip data is cut short"},
  };
  for (const auto& [bytes, message] : cases) {
    SCOPED_TRACE(message);
    ExpectBadInput(ReadAll(Write("bad.gz", bytes)), message, "bad.gz");
  }
}

TEST_F(DataFileTest, NoFlippedBitOfGzipChangesTheContent) {
  const std::string content = Mixed(300);
  const std::string good = Gzip(content);
  for (std::size_t i = 2; i < good.size(); ++i) {  // without 1f 8b it would be a plain file
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const auto read = ReadAll(Write("bad.gz", bad));
    // The header's time stamp and unused code lengths are free to differ.
    EXPECT_EQ(read.value_or(content), content) << "byte " << i;
  }
}

TEST_F(DataFileTest, UnreadableFilesAreNamed) {
  ExpectBadInput(DataFile::Open(folder_ / "none"), "cannot open", "none: No such file");
  ExpectBadInput(DataFile::Open(folder_), "cannot read", folder_.string() + ": Is a directory");
}

}  // namespace
}  // namespace verbatim
