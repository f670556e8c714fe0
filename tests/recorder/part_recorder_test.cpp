// Proves that a rank's file holds every part once the recorder is closed, that a part is written
// without one, and that a disk which fails stops the rank instead of losing a part.
#include "recorder/part_recorder.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/recorder/sample_part.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

using test::BytesOf;
using test::SamplePartFile;
using test::SampleReport;
using test::SampleSession;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr std::int64_t kNever = 3'600'000;  // milliseconds

std::vector<std::int64_t> SeqsIn(const fs::path& path) {
  auto reader = PartReader::Open(path);
  if (!reader) return {-1};
  std::vector<std::int64_t> seqs;
  while (true) {
    const auto part = reader->Next();
    if (!part) return {-2};
    if (!*part) return seqs;
    seqs.push_back((*part)->seq);
  }
}

Status Add(PartSink& sink, std::int64_t seq) {
  return sink.AddPart(seq, EncodeReport(seq, SampleReport(seq)));
}

TEST(PartRecorderTest, FileHoldsEveryPartInOrder) {
  const test::TemporaryFolder folder;
  auto recorder = PartRecorder::Create(folder / "p", SampleSession(), false);
  ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
  for (int seq = 0; seq < 5; ++seq) ASSERT_TRUE(Add(**recorder, seq).has_value());
  ASSERT_TRUE((*recorder)->Close().has_value());
  EXPECT_EQ(BytesOf(folder / "p"), SamplePartFile(5));
}

TEST(PartRecorderTest, DestructorWritesWhatIsQueued) {
  const test::TemporaryFolder folder;
  auto recorder = PartRecorder::Create(folder / "p", SampleSession(), false, {1000, kNever});
  for (int seq = 0; seq < 5; ++seq) ASSERT_TRUE(Add(**recorder, seq).has_value());
  recorder->reset();
  EXPECT_THAT(SeqsIn(folder / "p"), ElementsAre(0, 1, 2, 3, 4));
}

TEST(PartRecorderTest, APartIsReadableThoughTheRankGoesOn) {
  const test::TemporaryFolder folder;
  auto recorder = PartRecorder::Create(folder / "p", SampleSession(), false, {1, kNever});
  ASSERT_TRUE(Add(**recorder, 0).has_value());
  // At a capacity of one there is room only when it has been taken; the next wait ends when that
  // was written and the second one taken.
  ASSERT_TRUE((*recorder)->WaitForRoom().has_value());
  ASSERT_TRUE(Add(**recorder, 1).has_value());
  ASSERT_TRUE((*recorder)->WaitForRoom().has_value());
  const auto seqs = SeqsIn(folder / "p");
  ASSERT_FALSE(seqs.empty());
  EXPECT_EQ(seqs[0], 0);
}

TEST(PartRecorderTest, ManyThreadsLoseNothing) {
  const test::TemporaryFolder folder;
  auto recorder = PartRecorder::Create(folder / "p", SampleSession(), false, {2, 0});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(Add(**recorder, 50 * thread + i).has_value());
        EXPECT_TRUE((*recorder)->WaitForRoom().has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE((*recorder)->Close().has_value());
  std::vector<std::int64_t> all(200);
  for (int i = 0; i < 200; ++i) all[static_cast<std::size_t>(i)] = i;
  EXPECT_THAT(SeqsIn(folder / "p"), UnorderedElementsAreArray(all));
}

TEST(PartRecorderTest, AFullDiskStopsTheRank) {
  auto file = DurableFile::Append("/dev/full");
  ASSERT_TRUE(file.has_value());
  const auto recorder = PartRecorder::Start(*std::move(file), {1, 0});
  Status status = Add(*recorder, 0);
  for (int seq = 1; status; ++seq) {  // ends at once: there is room only after an error
    status = recorder->WaitForRoom();
    if (status) status = Add(*recorder, seq);
  }
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("/dev/full"));
  EXPECT_FALSE(Add(*recorder, 9).has_value());
  EXPECT_FALSE(recorder->Close().has_value());
}

TEST(PartRecorderTest, NewRunTakesNoOldFile) {
  const test::TemporaryFolder folder;
  test::WriteBytes(folder / "p", "all that is left of a run");
  const auto recorder = PartRecorder::Create(folder / "p", SampleSession(), false);
  ASSERT_FALSE(recorder.has_value());
  EXPECT_EQ(recorder.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(recorder.error().hint, HasSubstr("remove it yourself"));
  EXPECT_EQ(BytesOf(folder / "p"), "all that is left of a run");
}

TEST(PartRecorderTest, OnlyAnOldPartFileIsOverwritten) {
  const test::TemporaryFolder folder;
  test::WriteBytes(folder / "p", SamplePartFile(3));
  test::WriteBytes(folder / "notes", "something else");
  auto recorder = PartRecorder::Create(folder / "p", SampleSession(), true);
  ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
  ASSERT_TRUE((*recorder)->Close().has_value());
  EXPECT_EQ(BytesOf(folder / "p"), SamplePartFile(0));
  const auto refused = PartRecorder::Create(folder / "notes", SampleSession(), true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(BytesOf(folder / "notes"), "something else");
}

TEST(PartRecorderTest, MissingFolderIsAFailure) {
  const test::TemporaryFolder folder;
  const auto recorder = PartRecorder::Create(folder.path() / "no" / "p", SampleSession(), false);
  ASSERT_FALSE(recorder.has_value());
  EXPECT_EQ(recorder.error().kind, ErrorKind::kFailed);
}

TEST(PartRecorderTest, ResumptionGoesOnBehindTheLastWholePart) {
  const std::string two = SamplePartFile(2);
  const std::string three = SamplePartFile(3);
  for (const std::size_t torn : {std::size_t{0}, std::size_t{1}, three.size() - two.size() - 1}) {
    const test::TemporaryFolder folder;
    const fs::path path = test::WriteBytes(folder / "p", three.substr(0, two.size() + torn));
    const PartSession session = SampleSession(1, 2);  // on fewer ranks
    auto recorder = PartRecorder::Reopen(path, session);
    ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
    ASSERT_TRUE(Add(**recorder, 7).has_value());
    ASSERT_TRUE((*recorder)->Close().has_value());
    EXPECT_EQ(BytesOf(path), two + EncodeFrame(session) + test::SampleFrame(7)) << torn;
  }
}

TEST(PartRecorderTest, ResumptionWithoutAFileBeginsOne) {
  const test::TemporaryFolder folder;
  auto recorder = PartRecorder::Reopen(folder / "p", SampleSession());
  ASSERT_TRUE(recorder.has_value());
  ASSERT_TRUE((*recorder)->Close().has_value());
  EXPECT_EQ(BytesOf(folder / "p"), SamplePartFile(0));
  EXPECT_THAT(folder.Files(), SizeIs(1));
}

TEST(PartRecorderTest, ResumptionLeavesOtherFilesAlone) {
  PartSession other_spec = SampleSession();
  other_spec.spec = SpecDigest("another");
  std::string damaged = SamplePartFile(2);
  damaged[SamplePartFile(1).size() - 1] ^= 1;
  const struct {
    PartSession session;
    std::string bytes;
    ErrorKind kind;
    const char* message;
  } cases[] = {
      {other_spec, SamplePartFile(2), ErrorKind::kUsage, "of a run with another spec"},
      {SampleSession(2), SamplePartFile(2), ErrorKind::kUsage, "of rank 1, not of rank 2"},
      {SampleSession(), "something else", ErrorKind::kBadInput, "is no rank's part file"},
      {SampleSession(), damaged, ErrorKind::kBadInput, "was changed or damaged"},
  };
  for (const auto& test : cases) {
    const test::TemporaryFolder folder;
    const fs::path path = test::WriteBytes(folder / "p", test.bytes);
    const auto recorder = PartRecorder::Reopen(path, test.session);
    ASSERT_FALSE(recorder.has_value()) << test.message;
    EXPECT_EQ(recorder.error().kind, test.kind);
    EXPECT_THAT(recorder.error().message, HasSubstr(test.message));
    EXPECT_FALSE(recorder.error().hint.empty());
    EXPECT_EQ(BytesOf(path), test.bytes);
  }
}

}  // namespace
}  // namespace verbatim
