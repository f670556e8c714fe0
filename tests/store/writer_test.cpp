// Proves what a writer refuses, that it fails with a clear error, and that what it has returned OK
// for survives: a full disk, a lock, a killed process.
#include "store/writer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Error CreateError(const fs::path& path, bool overwrite) {
  const auto layers = SampleLayers();
  auto writer = RecordWriter::Create(path, SampleRun(), {}, layers, overwrite);
  EXPECT_FALSE(writer);
  return writer ? Error{} : writer.error();
}

class WriterTest : public ::testing::Test {
 protected:
  std::int64_t CountSubnets() {
    auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return reader ? (*reader)->SubnetCount().value_or(-1) : -1;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

TEST_F(WriterTest, LeavesOneFile) {
  WriteSample(path_, SampleSubnets(3));
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db"));
}

TEST_F(WriterTest, EndsWithEverythingOrNothing) {
  const auto writer = CreateSample(path_);
  const std::vector<EvaluationRow> twice = {{0, {1, 2}, 90, 100}, {0, {1, 2}, 90, 100}};
  EXPECT_FALSE(writer->Close(RunStatus::kComplete, "", twice));
  const auto reader = RecordReader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kRunning);
  EXPECT_THAT(*(*reader)->Evaluations(), IsEmpty());
}

TEST_F(WriterTest, FailsWhereItsFileIsGone) {
  for (const bool is_replaced : {false, true}) {
    const auto writer = CreateSample(path_);
    ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(1)));
    fs::rename(path_, folder_ / "moved.db");
    if (is_replaced) WriteFile(path_, "another file");
    const Status written = writer->WriteSubnets(std::vector{SampleSubnet(1)});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(written.error().message, HasSubstr(is_replaced ? "replaced" : "removed"));
    EXPECT_FALSE(writer->Close(RunStatus::kComplete, ""));
    for (const std::string& name : folder_.Files()) fs::remove(folder_ / name);
  }
}

TEST_F(WriterTest, RefusesWhatIsInTheWay) {
  WriteFile(folder_ / "file", "text");
  WriteFile(folder_ / "orphan.db-wal", "text");
  WriteSample(folder_ / "record.db", {});
  const struct {
    const char* name;
    bool overwrite;
    const char* message;
  } cases[] = {
      {"", false, "is a folder"},
      {"", true, "is a folder"},
      {"missing/run.db", false, "does not exist"},
      {"file", false, "exists already"},
      {"file", true, "is not a verbatim record"},
      {"file/run.db", false, "does not exist"},
      {"record.db", false, "exists already"},
      {"orphan.db", false, "orphan.db-wal is left over"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const Error error = CreateError(folder_ / test.name, test.overwrite);
    EXPECT_EQ(error.kind, ErrorKind::kUsage);
    EXPECT_THAT(error.message, HasSubstr(test.message));
    EXPECT_NE(error.hint, "");
  }
  EXPECT_EQ(ReadFile(folder_ / "file"), "text");
  EXPECT_THAT(CreateError(folder_ / "record.db", false).hint, HasSubstr("--force"));
}

TEST_F(WriterTest, RefusesSpecialFiles) {
  EXPECT_THAT(CreateError("/dev/null", true).message, HasSubstr("not a regular file"));
}

TEST_F(WriterTest, FolderThatCannotBeWritten) {
  const Error error = CreateError("/proc/run.db", false);
  EXPECT_EQ(error.kind, ErrorKind::kFailed);
  EXPECT_THAT(error.message, HasSubstr("/proc/run.db"));
  EXPECT_THAT(error.hint, HasSubstr("folder"));
}

TEST_F(WriterTest, BadHeadRowsLeaveNothing) {
  std::vector<LayerRow> layers = SampleLayers();
  layers[1].layer = layers[0].layer;
  const auto writer = RecordWriter::Create(path_, SampleRun(), {}, layers, false);
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message, HasSubstr("layers"));
  EXPECT_THAT(folder_.Files(), IsEmpty());
}

TEST_F(WriterTest, OverwriteReplacesARecord) {
  WriteSample(path_, SampleSubnets(3));
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_EQ(CountSubnets(), 0);
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db"));
}

TEST_F(WriterTest, OverwriteReplacesARecordThatIsDamaged) {
  WriteSample(path_, SampleSubnets(3));
  fs::resize_file(path_, 5000);
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_EQ(CountSubnets(), 0);
}

TEST_F(WriterTest, OverwriteReplacesAnEmptyFile) {
  WriteFile(path_, "");
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_EQ(CountSubnets(), 0);
}

TEST_F(WriterTest, OverwriteTakesAwayAnOrphanedWal) {
  WriteFile(folder_ / "run.db-wal", "text");
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db"));
}

TEST_F(WriterTest, OverwriteSparesARecordThatIsBeingWritten) {
  const auto writer = CreateSample(path_);
  ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(3)));
  const Error error = CreateError(path_, true);
  EXPECT_EQ(error.kind, ErrorKind::kFailed);
  EXPECT_THAT(error.message, HasSubstr("in use"));
  ASSERT_TRUE(writer->Close(RunStatus::kComplete, ""));
  EXPECT_EQ(CountSubnets(), 3);
}

TEST_F(WriterTest, SymbolicLinkIsFollowed) {
  WriteSample(folder_ / "target.db", {});
  fs::create_symlink("target.db", path_);
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(WriterTest, SubnetWrittenTwiceIsRefusedAndNothingOfItsBatchKept) {
  const auto writer = CreateSample(path_);
  ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(2)));
  const Status status = writer->WriteSubnets(std::vector{SampleSubnet(5), SampleSubnet(1)});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("subnets.seq"));
  EXPECT_EQ(CountSubnets(), 2);
  ASSERT_TRUE(writer->WriteSubnets(std::vector{SampleSubnet(5)}));
  EXPECT_EQ(CountSubnets(), 3);
}

TEST_F(WriterTest, UnknownLayerIsAProgrammersMistake) {
  SubnetRow subnet = SampleSubnet(0);
  subnet.accesses[0].layer = kSampleLayers;
  const auto writer = CreateSample(path_);
  EXPECT_DEATH(static_cast<void>(writer->WriteSubnets(std::vector{subnet})),
               "subnet 0 used layer 40");
}

TEST_F(WriterTest, LockedByAnotherConnection) {
  const auto writer = CreateSample(path_, false, 10);
  SQLite::Database other(path_.string(), SQLite::OPEN_READWRITE);
  other.exec("BEGIN EXCLUSIVE");
  const Status status = writer->WriteSubnets(SampleSubnets(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("holds a lock"));
  other.exec("ROLLBACK");
  EXPECT_TRUE(writer->WriteSubnets(SampleSubnets(1)));
}

TEST_F(WriterTest, ReadersDoNotDisturbIt) {
  const auto writer = CreateSample(path_, false, 10);
  auto reader = RecordReader::Open(path_);
  ASSERT_TRUE(reader);
  ASSERT_TRUE((*reader)->ForEachSubnet({}, [](const SubnetRow&) { return true; }));
  ASSERT_TRUE(writer->WriteSubnets(SampleSubnets(3)));
  int seen = 0;
  ASSERT_TRUE((*reader)->ForEachSubnet({}, [&](const SubnetRow& subnet) {
    const bool is_first = seen++ == 0;
    EXPECT_TRUE(!is_first || writer->WriteSubnets(std::vector{SampleSubnet(10)}));
    EXPECT_LT(subnet.seq, 3);
    return true;
  }));
  EXPECT_EQ(seen, 3);
  ASSERT_TRUE(writer->Close(RunStatus::kComplete, ""));
  EXPECT_EQ((*reader)->SubnetCount(), 4);
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kComplete);
  reader->reset();
  EXPECT_EQ(CountSubnets(), 4);
}

TEST_F(WriterTest, FileThatMayNotGrow) {
  const auto writer = CreateSample(path_);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 400'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status status;
  std::int64_t committed = 0;
  while (committed < 100'000) {
    status = writer->WriteSubnets(std::vector{SampleSubnet(committed, kSampleLayers)});
    if (!status) break;
    ++committed;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("size limit"));
  EXPECT_GT(committed, 0);
  EXPECT_EQ(CountSubnets(), committed);
  ASSERT_TRUE(writer->Close(RunStatus::kFailed, status.error().message));
  auto reader = RecordReader::Open(path_);
  EXPECT_THAT(*(*reader)->IntegrityProblems(), IsEmpty());
  EXPECT_EQ((*reader)->SubnetCount(), committed);
}

TEST_F(WriterTest, KilledProcessLosesNothingCommitted) {
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = CreateSample(path_);
    if (writer->WriteSubnets(SampleSubnets(20, kSampleLayers))) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state));
  auto reader = RecordReader::Open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kRunning);
  EXPECT_EQ(ReadSubnets(**reader)->size(), 20u);
  EXPECT_THAT(*(*reader)->IntegrityProblems(), IsEmpty());
  reader->reset();
  ASSERT_TRUE(CreateSample(path_, true)->Close(RunStatus::kComplete, ""));
  EXPECT_THAT(folder_.Files(), ElementsAre("run.db"));
}

TEST_F(WriterTest, WithoutCloseTheRunStaysRunning) {
  ASSERT_TRUE(CreateSample(path_)->WriteSubnets(SampleSubnets(2)));
  EXPECT_EQ(CountSubnets(), 2);
  EXPECT_EQ((*RecordReader::Open(path_))->Run()->status, RunStatus::kRunning);
}

}  // namespace
}  // namespace verbatim
