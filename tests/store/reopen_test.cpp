// Proves that a record is gone on with as if it had never stopped, that its trees, heads, seals and
// checkpoints are those of what is committed, and that it has one writer at a time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "store/merkle.h"
#include "store/seal.h"
#include "store/tree.h"
#include "store/writer.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ResumptionRow SampleResumption() {
  return {0,
          "0.2.0",
          "verbatim resume",
          "causal",
          "cpu",
          2,
          3,
          "equal",
          4,
          "2026-02-01T12:00:00Z",
          R"({"info.host":"b"})"};
}

CheckpointRow SampleCheckpoint(std::int64_t cut) {
  CheckpointRow checkpoint{cut, "2026-02-01T12:30:00Z", {}};
  for (int layer = 0; layer < kSampleLayers; ++layer) {
    checkpoint.layers.push_back({layer % 3 - 1, SampleHash(layer + static_cast<int>(cut))});
  }
  return checkpoint;
}

/// By the definition of RFC 9162, section 2.1.1.
Hash256 PlainRoot(std::span<const Hash256> leaves) {
  if (leaves.empty()) return Blake2b({});
  if (leaves.size() == 1) return leaves[0];
  std::size_t left = 1;
  while (2 * left < leaves.size()) left *= 2;
  return NodeHash(PlainRoot(leaves.first(left)), PlainRoot(leaves.subspan(left)));
}

class ReopenTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordReader> Open() { return *RecordReader::Open(path_); }
  std::unique_ptr<RecordWriter> Reopen() {
    auto writer = RecordWriter::Reopen(path_, SampleResumption());
    EXPECT_TRUE(writer) << (writer ? "" : writer.error().message);
    return writer ? *std::move(writer) : nullptr;
  }
  void ExpectTree(const RecordReader& reader, const std::vector<SubnetRow>& subnets) {
    std::vector<Hash256> content, layout;
    for (const SubnetRow& subnet : subnets) {
      content.push_back(subnet.content_leaf);
      layout.push_back(subnet.layout_leaf);
    }
    const auto head = reader.HeadNow();
    ASSERT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->subnets, std::ssize(subnets));
    EXPECT_EQ(head->content_root, PlainRoot(content));
    EXPECT_EQ(head->layout_root, PlainRoot(layout));
    for (std::size_t size = 0; size <= subnets.size(); ++size) {
      const auto at = reader.HeadAt(static_cast<std::int64_t>(size), 0);
      ASSERT_TRUE(at);
      EXPECT_EQ(at->content_root, PlainRoot(std::span(content).first(size)));
    }
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

// Rows of the part that comes first, of one after a gap, and of the rest: nodes at all moments.
TEST_F(ReopenTest, EveryOrderAndStopLeavesTheSameTree) {
  const std::vector<SubnetRow> all = SampleSubnets(70);
  const std::span<const SubnetRow> rows(all);
  for (const std::size_t stop : {0u, 1u, 15u, 16u, 33u, 69u}) {
    SCOPED_TRACE(stop);
    const auto writer = CreateSample(path_, true);
    ASSERT_TRUE(writer->WriteSubnets(rows.first(stop)));
    EXPECT_EQ(writer->CurrentHead().subnets, static_cast<std::int64_t>(stop));
    // The last one is there already, beyond the gap.
    ASSERT_TRUE(writer->WriteSubnets(rows.last(1)));
    ASSERT_TRUE(writer->Close(RunStatus::kInterrupted, "stopped"));
    const auto second = Reopen();
    ASSERT_TRUE(second->WriteSubnets(rows.subspan(stop, 69 - stop)));
    EXPECT_EQ(second->CurrentHead().subnets, 70);
    ASSERT_TRUE(second->Close(RunStatus::kComplete, ""));
    const auto reader = Open();
    ExpectTree(*reader, all);
    EXPECT_EQ(reader->StoredNodeCount(), 4 + 2 + 1);
  }
}

TEST_F(ReopenTest, HeadsAreThoseOfTheReader) {
  const auto writer = CreateSample(path_);
  const auto same = [&] {
    Head written = writer->CurrentHead(), read = Open()->HeadNow().value();
    written.created_utc = read.created_utc = "";
    EXPECT_EQ(written, read);
    return read;
  };
  EXPECT_EQ(same().content_root, Blake2b({}));
  ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(20)));
  EXPECT_FALSE(same().end.has_value());
  const std::vector<EvaluationRow> evaluations = {{0, {1, 2}, 90, 100}};
  ASSERT_TRUE(writer->Close(RunStatus::kComplete, "done", evaluations));
  const Head last = same();
  EXPECT_EQ(last.end, EndSeal(*Open()->Run(), evaluations));
  EXPECT_EQ(last.start, StartSeal(SampleRun(), SampleLayers()));
  EXPECT_EQ(last.circumstances, CircumstancesSeal(SampleRun(), SampleEnvironment(), {}));
}

TEST_F(ReopenTest, HeadsOfWhatIsNotThereAreRefused) {
  WriteSample(path_, SampleSubnets(3));
  const auto reader = Open();
  EXPECT_THAT(reader->HeadAt(4, 0).error().message,
              HasSubstr("has 3 subnets without a gap, not 4"));
  EXPECT_THAT(reader->HeadAt(3, 1).error().message, HasSubstr("resumed 0 times, not 1"));
  EXPECT_FALSE(reader->ContentTree()(0, 3));
  EXPECT_FALSE(reader->ContentTree()(4, 0));
}

TEST_F(ReopenTest, AddsItsRowAndRunsAgain) {
  WriteSample(path_, SampleSubnets(3));
  const auto writer = Reopen();
  EXPECT_EQ(Open()->Run()->status, RunStatus::kRunning);
  EXPECT_EQ(Open()->Run()->ended_utc, "");
  ASSERT_TRUE(writer->Close(RunStatus::kInterrupted, "again"));
  ASSERT_TRUE(Reopen()->Close(RunStatus::kComplete, ""));
  ResumptionRow first = SampleResumption(), second = SampleResumption();
  first.resumption = 1;
  second.resumption = 2;
  const auto reader = Open();
  EXPECT_EQ(reader->Resumptions(), (std::vector{first, second}));
  const std::vector<SealRow> seals = {
      {"circumstances",
       CircumstancesSeal(SampleRun(), SampleEnvironment(), std::vector{first, second})},
      {"end", EndSeal(*reader->Run(), *reader->Evaluations())},
      {"start", StartSeal(SampleRun(), SampleLayers())}};
  EXPECT_EQ(reader->Seals(), seals);
  EXPECT_EQ(reader->HeadAt(3, 1)->circumstances,
            CircumstancesSeal(SampleRun(), SampleEnvironment(), std::vector{first}));
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db"));
}

TEST_F(ReopenTest, GoesOnAfterAKilledWriter) {
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = CreateSample(path_);
    if (writer->WriteSubnets(SampleSubnets(18))) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state));
  const auto writer = Reopen();
  const std::vector<SubnetRow> all = SampleSubnets(40);
  ASSERT_TRUE(writer->WriteSubnets(std::span(all).subspan(18)));
  ASSERT_TRUE(writer->Close(RunStatus::kComplete, ""));
  ExpectTree(*Open(), all);
}

TEST_F(ReopenTest, ASubnetIsWrittenOnce) {
  WriteSample(path_, SampleSubnets(3));
  const auto writer = Reopen();
  const Status again = writer->WriteSubnets(std::vector{SampleSubnet(3), SampleSubnet(1)});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(again.error().message, HasSubstr("subnets.seq"));
  EXPECT_EQ(writer->CurrentHead().subnets, 3);
  ASSERT_TRUE(writer->WriteSubnets(std::vector{SampleSubnet(3)}));
  EXPECT_EQ(writer->CurrentHead().subnets, 4);
}

TEST_F(ReopenTest, OneWriterAtATime) {
  const auto writer = CreateSample(path_);
  const auto second = RecordWriter::Reopen(path_, SampleResumption());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(second.error().message, HasSubstr("is in use: another process writes this record"));
  const auto over = RecordWriter::Create(path_, SampleRun(), {}, SampleLayers(), true);
  ASSERT_FALSE(over);
  EXPECT_THAT(over.error().message, HasSubstr("is in use"));
  ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(2)));
  ASSERT_TRUE(writer->Close(RunStatus::kInterrupted, ""));
  EXPECT_EQ(Reopen()->CurrentHead().subnets, 2);
}

/// Whether another process could take all of SQLite's lock on the file, as it does to remove the
/// write-ahead log when it is the last to close it.
bool CanBeLockedElsewhere(const fs::path& path) {
  constexpr off_t kSharedFirst = 0x40000002, kSharedBytes = 510;
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kSharedFirst;
    lock.l_len = kSharedBytes;
    const int file = open(path.c_str(), O_RDWR);
    _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK ? 1 : 0);
  }
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  return WEXITSTATUS(state) == 1;
}

// When a process closes any descriptor of a file, the system drops its locks there.
TEST_F(ReopenTest, NothingThatIsOpenedBesideItDropsTheLock) {
  WriteSample(path_, SampleSubnets(3));
  EXPECT_TRUE(CanBeLockedElsewhere(path_));
  const auto reader = Open();
  const auto writer = Reopen();
  ASSERT_TRUE(writer->WriteSubnets(std::vector{SampleSubnet(3)}));
  EXPECT_FALSE(CanBeLockedElsewhere(path_));
  EXPECT_EQ(Open()->SubnetCount(), 4);
  EXPECT_FALSE(CanBeLockedElsewhere(path_));
}

TEST_F(ReopenTest, RefusesWhatAnotherProcessWroteMeanwhile) {
  ASSERT_TRUE(CreateSample(path_)->WriteSubnets(SampleSubnets(3)));
  const auto reopened_by = [&](std::int64_t subnets_seen) {
    return RecordWriter::Reopen(path_, SampleResumption(), subnets_seen);
  };
  const auto late = reopened_by(2);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(late.error().message, HasSubstr("meanwhile: its run has 3 subnets now"));
  EXPECT_TRUE(Open()->Resumptions()->empty());
  const auto first = reopened_by(3);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE((*first)->Close(RunStatus::kComplete, ""));
  EXPECT_THAT(reopened_by(3).error().message, HasSubstr("and is complete"));
  EXPECT_EQ(Open()->Run()->status, RunStatus::kComplete);
}

TEST_F(ReopenTest, RefusesWhatCannotBeGoneOnWith) {
  const auto error = [&] { return RecordWriter::Reopen(path_, SampleResumption()).error(); };
  EXPECT_EQ(error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(error().message, HasSubstr("does not exist"));
  WriteFile(path_, "some text that is longer than the magic string");
  EXPECT_THAT(error().message, HasSubstr("no SQLite file"));
  fs::remove(path_);
  WriteSample(path_, SampleSubnets(20));
  Tamper(path_, "CREATE TRIGGER t AFTER INSERT ON subnets BEGIN DELETE FROM subnets; END");
  EXPECT_THAT(error().message, HasSubstr("there is a trigger"));
  Tamper(path_, "DROP TRIGGER t; DELETE FROM subnets WHERE seq = 17");
  EXPECT_EQ(Reopen()->CurrentHead().subnets, 17);
}

// Whoever begins at 4 could not use them, and would keep them instead of its own.
TEST_F(ReopenTest, CheckpointsAboveTheCutGo) {
  const auto writer = CreateSample(path_);
  for (const std::int64_t cut : {2, 4, 6}) {
    ASSERT_TRUE(writer->WriteCheckpoint(SampleCheckpoint(cut), 3));
  }
  ASSERT_TRUE(writer->Close(RunStatus::kInterrupted, ""));
  ASSERT_EQ(SampleResumption().cut, 4);
  EXPECT_TRUE(Reopen());
  EXPECT_EQ(Open()->Checkpoints(), (std::vector{SampleCheckpoint(2), SampleCheckpoint(4)}));
}

TEST_F(ReopenTest, CheckpointsAreKeptUpToANumber) {
  const auto writer = CreateSample(path_);
  for (const std::int64_t cut : {2, 4, 6, 4}) {
    ASSERT_TRUE(writer->WriteCheckpoint(SampleCheckpoint(cut), 2));
  }
  const auto reader = Open();
  EXPECT_EQ(reader->Checkpoints(), (std::vector{SampleCheckpoint(4), SampleCheckpoint(6)}));
  EXPECT_EQ(*reader->StoredCheckpointSeal(4), CheckpointSeal(SampleCheckpoint(4)));
  EXPECT_FALSE(reader->StoredCheckpointSeal(2)->has_value());
  SQLite::Database database(path_.string(), SQLite::OPEN_READONLY);
  SQLite::Statement view(database,
                         "SELECT count(*), min(version), max(version), max(layer) FROM"
                         " checkpoint_layers WHERE cut = 6");
  ASSERT_TRUE(view.executeStep());
  EXPECT_EQ(view.getColumn(0).getInt(), kSampleLayers);
  EXPECT_EQ(view.getColumn(1).getInt(), -1);
  EXPECT_EQ(view.getColumn(2).getInt(), 1);
  EXPECT_EQ(view.getColumn(3).getInt(), kSampleLayers - 1);
  EXPECT_EQ(database.execAndGet("SELECT file FROM checkpoint_layers WHERE cut = 6 AND layer = 3")
                .getString(),
            ToHex(SampleHash(9)));
}

}  // namespace
}  // namespace verbatim
