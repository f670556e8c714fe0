// Proves that a reader opens every record however it was left, names what is wrong with every
// other file, and never trusts a value that it reads.
#include "store/reader.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <random>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReaderTest : public ::testing::Test {
 protected:
  Error OpenError(const fs::path& path) {
    auto reader = RecordReader::Open(path);
    EXPECT_FALSE(reader);
    return reader ? Error{} : reader.error();
  }

  // A record whose writer was killed, with all of its rows in the WAL.
  void LeaveByKilledWriter(const fs::path& path) {
    const pid_t child = fork();
    if (child == 0) {
      const auto writer = CreateSample(path);
      if (writer->WriteSubnets(SampleSubnets(3))) kill(getpid(), SIGKILL);
      _exit(1);
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    ASSERT_TRUE(WIFSIGNALED(state));
  }

  // Number of subnets that somebody without the right to write sees in the folder; -1: an error.
  int CountWithoutWriteAccess(const fs::path& path) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      fs::permissions(entry.path(), fs::perms(0444));
    }
    fs::permissions(folder_.path(), fs::perms(0555));
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(200);
      auto reader = RecordReader::Open(path);
      if (!reader) std::fprintf(stderr, "%s\n", reader.error().message.c_str());
      if (!reader) _exit(201);
      const auto subnets = ReadSubnets(**reader);
      if (!subnets) std::fprintf(stderr, "%s\n", subnets.error().message.c_str());
      _exit(subnets ? static_cast<int>(subnets->size()) : 202);
    }
    int state = 0;
    waitpid(child, &state, 0);
    fs::permissions(folder_.path(), fs::perms(0755));
    return WIFEXITED(state) && WEXITSTATUS(state) < 200 ? WEXITSTATUS(state) : -1;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

TEST_F(ReaderTest, RefusesWhatIsNoRecord) {
  WriteFile(folder_ / "empty", "");
  WriteFile(folder_ / "text", "some text that is longer than the magic string");
  WriteFile(folder_ / "short", std::string("SQLite format 3\0abc", 19));
  SQLite::Database((folder_ / "other.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE t (x)");
  const std::pair<const char*, const char*> cases[] = {
      {"missing", "does not exist"}, {"", "is a folder"},
      {"empty", "is empty"},         {"text", "no SQLite file"},
      {"short", "cut off"},          {"other.db", "is an SQLite file, but not a verbatim record"},
  };
  for (const auto& [name, message] : cases) {
    SCOPED_TRACE(name);
    const Error error = OpenError(folder_ / name);
    EXPECT_EQ(error.kind, ErrorKind::kBadInput);
    EXPECT_THAT(error.message, HasSubstr(message));
    EXPECT_THAT(error.message, HasSubstr((folder_ / name).string()));
    EXPECT_NE(error.hint, "");
  }
}

TEST_F(ReaderTest, RefusesOtherVersions) {
  WriteSample(path_, {});
  Tamper(path_, "PRAGMA user_version = 6");
  const Error newer = OpenError(path_);
  EXPECT_EQ(newer.kind, ErrorKind::kBadInput);
  EXPECT_THAT(newer.message, HasSubstr("format version 6; this program reads versions 4 and 5"));
  EXPECT_THAT(newer.hint, HasSubstr("newer"));
  Tamper(path_, "PRAGMA user_version = 3");
  const Error older = OpenError(path_);
  EXPECT_EQ(older.kind, ErrorKind::kBadInput);
  EXPECT_THAT(older.message, HasSubstr("format version 3; this program reads versions 4 and 5"));
  EXPECT_THAT(older.hint, HasSubstr("the verbatim that wrote it"));
  EXPECT_THAT(older.hint, HasSubstr("train its spec again"));
}

TEST_F(ReaderTest, TakesNoRunOfThisProgramForAStepRun) {
  WriteSample(path_, {});
  Tamper(path_, "PRAGMA user_version = 5");
  EXPECT_THAT(OpenError(path_).message, HasSubstr("no table steps"));
}

TEST_F(ReaderTest, NamesAMissingTable) {
  WriteSample(path_, {});
  Tamper(path_, "DROP TABLE tree");
  EXPECT_THAT(OpenError(path_).message, HasSubstr("no table tree"));
}

TEST_F(ReaderTest, NamesAMissingColumn) {
  WriteSample(path_, {});
  Tamper(path_, "ALTER TABLE run RENAME COLUMN policy TO other");
  const auto run = (*RecordReader::Open(path_))->Run();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(run.error().message, HasSubstr("policy"));
}

TEST_F(ReaderTest, TakesTablesAndViewsThatSomebodyAdded) {
  WriteSample(path_, SampleSubnets(2));
  Tamper(
      path_,
      "CREATE TABLE notes (x); CREATE INDEX i ON subnets (loss_bits); CREATE VIEW v AS SELECT 1");
  EXPECT_EQ((*RecordReader::Open(path_))->SubnetCount(), 2);
}

TEST_F(ReaderTest, ReadsWithoutWriteAccess) {
  WriteSample(path_, SampleSubnets(3));
  EXPECT_EQ(CountWithoutWriteAccess(path_), 3);
}

TEST_F(ReaderTest, ReadsAKilledWritersRecordWithoutWriteAccess) {
  LeaveByKilledWriter(path_);
  EXPECT_EQ(CountWithoutWriteAccess(path_), 3);
}

TEST_F(ReaderTest, ReadsAKilledWritersRecordWithoutItsShm) {
  LeaveByKilledWriter(path_);
  fs::remove(folder_ / "run.db-shm");
  EXPECT_EQ(CountWithoutWriteAccess(path_), 3);
}

// Names with characters that mean something in a URI.
TEST_F(ReaderTest, ReadsUnderAnyName) {
  const fs::path path = folder_ / "a b%20#1?x=ü.db";
  LeaveByKilledWriter(path);
  fs::remove(path.string() + "-shm");
  EXPECT_EQ(CountWithoutWriteAccess(path), 3);
}

TEST_F(ReaderTest, ReadsAMainFileThatLostItsWal) {
  LeaveByKilledWriter(path_);
  fs::remove(folder_ / "run.db-wal");
  fs::remove(folder_ / "run.db-shm");
  EXPECT_EQ(CountWithoutWriteAccess(path_), 0);
  EXPECT_EQ((*RecordReader::Open(path_))->Layers(), SampleLayers());
}

TEST_F(ReaderTest, DamagedRowsAreNamed) {
  const struct {
    const char* sql;
    const char* problem;
  } cases[] = {
      {"UPDATE subnets SET choices = '[1, 2]' WHERE seq = 1",
       "table subnets, row seq 1: column choices is not a list of candidates"},
      {"UPDATE subnets SET samples = x'010203' WHERE seq = 1",
       "table subnets, row seq 1: column samples is bytes of length 3"},
      {"UPDATE subnets SET batch_digest = x'01' WHERE seq = 1",
       "table subnets, row seq 1: column batch_digest is bytes of length 1"},
      {"UPDATE subnets SET loss_bits = -1 WHERE seq = 1",
       "table subnets, row seq 1: column loss_bits is -1, not in 0 to 4294967295"},
      {"UPDATE subnets SET loss_bits = 4294967296 WHERE seq = 1", "column loss_bits"},
      {"UPDATE subnets SET seq = -5 WHERE seq = 1", "table subnets, row seq -5: column seq"},
      {"UPDATE subnets SET content_leaf = x'00' WHERE seq = 1",
       "column content_leaf is bytes of length 1, not a hash of 32 bytes"},
      {"UPDATE subnets SET layout_leaf = x'' WHERE seq = 1", "column layout_leaf is bytes"},
      {"UPDATE subnets SET accesses = x'' WHERE seq = 1",
       "table subnets, row seq 1: column accesses holds no list of accesses in its 0 bytes"},
      {"UPDATE subnets SET accesses = substr(accesses, 1, length(accesses) - 1) WHERE seq = 1",
       "column accesses holds no list of accesses"},
      {"UPDATE subnets SET activations = x'' WHERE seq = 1",
       "column activations holds no list of activations in its 0 bytes"},
      {"UPDATE subnets SET activity = substr(activity, 1, 9) WHERE seq = 1",
       "column activity holds no list of tasks in its 9 bytes"},
  };
  WriteSample(folder_ / "sound.db", SampleSubnets(3));
  for (const auto& test : cases) {
    SCOPED_TRACE(test.sql);
    fs::copy_file(folder_ / "sound.db", path_, fs::copy_options::overwrite_existing);
    Tamper(path_, test.sql);
    auto reader = RecordReader::Open(path_);
    ASSERT_TRUE(reader);
    const auto subnets = ReadSubnets(**reader);
    ASSERT_FALSE(subnets);
    EXPECT_EQ(subnets.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(subnets.error().message, HasSubstr(test.problem));
    EXPECT_THAT(subnets.error().message, HasSubstr(path_.string()));
  }
}

TEST_F(ReaderTest, DamagedHeadRowsAreNamed) {
  const struct {
    const char* sql;
    const char* problem;
  } cases[] = {
      {"DELETE FROM run", "table run has 0 rows"},
      {"INSERT INTO run SELECT 2, tool_version, spec_json, spec_folder, command_line, policy,"
       " record_level, device, stages, in_flight, partition, subnets_planned, dataset_digest,"
       " started_utc, ended_utc, status, status_detail FROM run",
       "table run, row id 2"},
      {"UPDATE run SET status = 'lost'", "column status is 'lost'"},
      {"UPDATE run SET stages = 0", "column stages is 0"},
      {"UPDATE run SET dataset_digest = x'00'", "column dataset_digest"},
      {"UPDATE layers SET versioned = 2 WHERE layer = 3",
       "table layers, row layer 3: column versioned is 2"},
      {"UPDATE layers SET layer = 1048576 WHERE layer = 3", "column layer is 1048576"},
      {"UPDATE layers SET initial_digest = x'' WHERE layer = 3", "column initial_digest"},
      {"UPDATE evaluations SET choices = '1,2'", "table evaluations, row evaluation 0"},
      {"UPDATE evaluations SET correct = -1", "column correct is -1"},
  };
  WriteSample(folder_ / "sound.db", {});
  for (const auto& test : cases) {
    SCOPED_TRACE(test.sql);
    fs::copy_file(folder_ / "sound.db", path_, fs::copy_options::overwrite_existing);
    Tamper(path_, test.sql);
    auto reader = RecordReader::Open(path_);
    ASSERT_TRUE(reader);
    std::string message;
    if (const auto run = (*reader)->Run(); !run) message += run.error().message;
    if (const auto layers = (*reader)->Layers(); !layers) message += layers.error().message;
    if (const auto rows = (*reader)->Evaluations(); !rows) message += rows.error().message;
    EXPECT_THAT(message, HasSubstr(test.problem));
  }
}

TEST_F(ReaderTest, SchemaProblemsNameWhatWasChanged) {
  WriteSample(folder_ / "sound.db", SampleSubnets(3));
  EXPECT_EQ((*RecordReader::Open(folder_ / "sound.db"))->SchemaProblems(),
            std::vector<std::string>{});
  const std::pair<const char*, const char*> cases[] = {
      {"ALTER TABLE run RENAME COLUMN policy TO other", "definition of table run was changed"},
      {"DROP VIEW lineage", "there is no view lineage"},
      {"DROP VIEW accesses; CREATE VIEW accesses AS SELECT 1",
       "the definition of view accesses was changed"},
      {"CREATE TRIGGER t AFTER INSERT ON subnets BEGIN SELECT 1; END",
       "there is a trigger, t, which no run adds"},
  };
  for (const auto& [sql, problem] : cases) {
    fs::copy_file(folder_ / "sound.db", path_, fs::copy_options::overwrite_existing);
    Tamper(path_, sql);
    const auto problems = (*RecordReader::Open(path_))->SchemaProblems();
    ASSERT_TRUE(problems);
    EXPECT_THAT(*problems, testing::Contains(HasSubstr(problem)));
  }
}

// Reads everything; true where anything at all was found to be wrong.
bool IsFoundDamaged(const fs::path& path) {
  auto reader = RecordReader::Open(path);
  if (!reader) return true;
  const auto problems = (*reader)->IntegrityProblems();
  const bool is_read = (*reader)->Run() && (*reader)->Environment() && (*reader)->Layers() &&
                       (*reader)->Evaluations() && ReadSubnets(**reader) && (*reader)->Lineage(1);
  return !is_read || !problems || !problems->empty();
}

TEST_F(ReaderTest, TruncationAtEveryLengthIsFound) {
  WriteSample(folder_ / "sound.db", SampleSubnets(60, kSampleLayers));
  const std::string sound = ReadFile(folder_ / "sound.db");
  EXPECT_FALSE(IsFoundDamaged(folder_ / "sound.db"));
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length < 200; ++length) lengths.push_back(length);
  for (std::size_t length = 200; length < sound.size(); length += 509) lengths.push_back(length);
  for (std::size_t page = 4096; page < sound.size(); page += 4096) {
    for (const std::size_t length : {page - 1, page, page + 1}) lengths.push_back(length);
  }
  lengths.push_back(sound.size() - 1);
  for (const std::size_t length : lengths) {
    WriteFile(path_, sound.substr(0, length));
    EXPECT_TRUE(IsFoundDamaged(path_)) << "first " << length << " of " << sound.size() << " bytes";
  }
}

// Overwrites bytes anywhere; nothing may crash, whatever is reported.
TEST_F(ReaderTest, RandomDamageNeverCrashes) {
  constexpr std::uint32_t kSeed = 20260131;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  WriteSample(folder_ / "sound.db", SampleSubnets(40, kSampleLayers));
  const std::string sound = ReadFile(folder_ / "sound.db");
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    std::string damaged = sound;
    const int changes = 1 + static_cast<int>(random() % 64);
    for (int i = 0; i < changes; ++i) {
      damaged[100 + random() % (damaged.size() - 100)] = static_cast<char>(random());
    }
    WriteFile(path_, damaged);
    found += IsFoundDamaged(path_) ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace verbatim
