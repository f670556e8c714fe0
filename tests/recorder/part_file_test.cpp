// Proves that a part file gives back what went in, keeps everything before a torn tail, and takes
// no changed byte for a rank's word.
#include "recorder/part_file.h"

#include <gmock/gmock.h>

#include <vector>

#include "recorder/part_format.h"
#include "tests/recorder/sample_part.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

using test::SampleFrame;
using test::SamplePartFile;
using test::SampleReport;
using test::SampleSession;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PartFileTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& bytes) {
    return test::WriteBytes(folder_ / "run.db.rank-1", bytes);
  }
  Result<PartReader> Open(const std::string& bytes) { return PartReader::Open(Write(bytes)); }

  struct Content {
    std::vector<std::int64_t> seqs;
    std::uint64_t bytes_left = 0;
  };
  /// All that can be read.
  Result<Content> ReadAll(const std::string& bytes) {
    ASSIGN_OR_RETURN(PartReader reader, Open(bytes));
    Content content;
    while (true) {
      ASSIGN_OR_RETURN(const auto part, reader.Next());
      if (!part) break;
      content.seqs.push_back(part->seq);
    }
    content.bytes_left = reader.bytes_left();
    return content;
  }
  Error ErrorOf(const std::string& bytes) {
    const auto content = ReadAll(bytes);
    EXPECT_FALSE(content.has_value());
    return content ? Error{} : content.error();
  }

  test::TemporaryFolder folder_;
};

TEST_F(PartFileTest, IsBesideItsRecord) {
  EXPECT_EQ(PartPath("runs/run.db", 12).string(), "runs/run.db.rank-12");
}

// Bytes as literals: the format cannot drift together with its reader.
TEST_F(PartFileTest, BytesAreThoseOfTheFormatPage) {
  EXPECT_EQ(EncodePartHead(), std::string("VBTMPART\1\0\0\0", 12));
  const std::string frame = EncodeFrame(SampleSession());
  EXPECT_EQ(frame.substr(0, 8), std::string("part\x4b\0\0\0", 8));
  EXPECT_EQ(frame.size(), kFrameHeadBytes + 0x4b);
  EXPECT_EQ(EncodeFrame(258, "abc").substr(kFrameHeadBytes),
            std::string("\1\2\1\0\0\0\0\0\0abc", 12));
}

TEST_F(PartFileTest, GivesBackWhatWentIn) {
  auto reader = Open(SamplePartFile(3));
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->session(), SampleSession());
  for (std::int64_t seq = 0; seq < 3; ++seq) {
    const auto part = reader->Next();
    ASSERT_TRUE(part.has_value() && *part) << seq;
    const RankReport expected = SampleReport(seq);
    const RankReport& report = (*part)->report;
    EXPECT_EQ((*part)->seq, seq);
    EXPECT_EQ(report.loss, expected.loss);
    EXPECT_EQ(report.accesses, expected.accesses);
    EXPECT_EQ(report.activations, expected.activations);
    EXPECT_EQ(report.activity.size(), expected.activity.size());
    EXPECT_EQ(report.versions_moved, expected.versions_moved);
    EXPECT_EQ(report.bytes_moved, expected.bytes_moved);
  }
  const auto end = reader->Next();
  EXPECT_TRUE(end.has_value() && !*end);
  EXPECT_EQ(reader->sessions(), 1);
}

TEST_F(PartFileTest, SessionsFollowEachOther) {
  PartSession later = SampleSession(1, 2);
  later.host = "node-8";
  auto reader = Open(SamplePartFile(2) + EncodeFrame(later) + SampleFrame(1) + SampleFrame(2));
  ASSERT_TRUE(reader.has_value());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(reader->Next().has_value()) << i;
  EXPECT_EQ(reader->sessions(), 2);
  EXPECT_EQ(reader->session(), later);
}

TEST_F(PartFileTest, ATailThatIsTornAnywhereIsLeftOut) {
  const std::string two = SamplePartFile(2);
  const std::string three = SamplePartFile(3);
  for (std::size_t size = two.size(); size < three.size(); ++size) {
    const auto content = ReadAll(three.substr(0, size));
    ASSERT_TRUE(content.has_value()) << size << ": " << content.error().message;
    EXPECT_THAT(content->seqs, ElementsAre(0, 1)) << size;
    EXPECT_EQ(content->bytes_left, size - two.size()) << size;
  }
}

TEST_F(PartFileTest, WhatIsCutBeforeItsFirstFrameEndsIsNoPartFile) {
  const std::string head = SamplePartFile(0);
  for (std::size_t size = 0; size < head.size(); ++size) {
    const Error error = ErrorOf(head.substr(0, size));
    EXPECT_EQ(error.kind, ErrorKind::kBadInput) << size;
    EXPECT_THAT(error.hint, HasSubstr("."));
  }
}

TEST_F(PartFileTest, EveryFlippedBitIsFound) {
  const std::string bytes = SamplePartFile(3);
  const std::size_t last = SamplePartFile(2).size();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      const auto content = ReadAll(changed);
      if (at < last) {
        ASSERT_FALSE(content.has_value()) << at << ", bit " << bit;
        EXPECT_EQ(content.error().kind, ErrorKind::kBadInput);
      } else {  // as if it had been torn
        ASSERT_TRUE(content.has_value()) << at << ", bit " << bit;
        EXPECT_THAT(content->seqs, ElementsAre(0, 1));
        EXPECT_EQ(content->bytes_left, bytes.size() - last);
      }
    }
  }
}

TEST_F(PartFileTest, SaysWhatIsWrongAndWhatToDo) {
  const std::string good = SamplePartFile(1);
  const std::string two = SamplePartFile(2);
  std::string damaged = two;
  damaged[good.size() - 1] ^= 1;
  std::string newer = good;
  newer[8] = 2;
  PartSession stranger = SampleSession();
  stranger.spec = SpecDigest("another");
  const struct {
    std::string bytes;
    const char* message;
    const char* hint;
  } cases[] = {
      {"", "is empty", "move it away"},
      {std::string(4096, 'x'), "is no rank's part file", "such as run.db.rank-1"},
      {std::string("SQLite format 3\0", 16), "is no rank's part file", "such as"},
      {newer, "has version 2, this program reads 1", "the program that wrote it"},
      {damaged, "with whole frames behind it (at byte 111)", "from a copy"},
      {EncodePartHead() + SampleFrame(0), "does not begin by saying whose it is", "copy"},
      {good + EncodeFrame(stranger), "parts of several runs or ranks", "copy"},
      {good + EncodeFrame(SampleSession(2)), "parts of several runs or ranks", "copy"},
      {good + EncodeFrame(1, "garbage"), "its report of subnet 1 is cut off", "copy"},
      {good + EncodeFrame(-1, ""), "a frame of no subnet", "copy"},
  };
  for (const auto& test : cases) {
    const Error error = ErrorOf(test.bytes);
    EXPECT_EQ(error.kind, ErrorKind::kBadInput);
    EXPECT_THAT(error.message, HasSubstr(test.message));
    EXPECT_THAT(error.message, HasSubstr("run.db.rank-1"));
    EXPECT_THAT(error.hint, HasSubstr(test.hint)) << error.message;
  }
}

TEST_F(PartFileTest, AMissingFileAndAFolderAreBadInput) {
  for (const char* name : {"missing", "."}) {
    const auto reader = PartReader::Open(folder_ / name);
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().kind, ErrorKind::kBadInput);
    EXPECT_FALSE(reader.error().hint.empty());
  }
}

TEST(RankReportTest, OnlyWhatIsWrittenIsRead) {
  const std::string bytes = EncodeReport(3, SampleReport(3));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeReport(3, bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(DecodeReport(3, bytes + "x").has_value());
  std::string changed = bytes;
  changed[0] = 2;
  EXPECT_FALSE(DecodeReport(3, changed).has_value());
  changed[0] = 0;
  EXPECT_FALSE(DecodeReport(3, changed).has_value()) << "a loss that there is not";
}

}  // namespace
}  // namespace verbatim
