// Proves that damage to any column that only step runs have is named, and that the table is part of
// the schema.
#include <gmock/gmock.h>

#include "tests/recorder/sample_steps.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StepDamageTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordReader> Damage(const std::string& sql) {
    fs::copy_file(folder_ / "sound.db", path_, fs::copy_options::overwrite_existing);
    Tamper(path_, sql);
    auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return reader ? *std::move(reader) : nullptr;
  }
  void SetUp() override { WriteSampleSteps(folder_ / "sound.db"); }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

TEST_F(StepDamageTest, DamagedStepsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE steps SET step = -1 WHERE seq = 1",
       "table steps, row seq 1: column step is -1, not in 0 to 9007199254740991"},
      {"UPDATE steps SET step = 9007199254740992 WHERE seq = 1", "column step is 9007199254740992"},
      {"UPDATE steps SET facts = '' WHERE seq = 1",
       "table steps, row seq 1: column facts is no facts of a step"},
      {"UPDATE steps SET facts = facts || ' ' WHERE seq = 1",
       "column facts is not the canonical JSON of a step's facts"},
      {R"(UPDATE steps SET facts = '{"settings":{"lr":[1]}}' WHERE seq = 1)",
       "settings.lr: expected a string, a number or a boolean"},
      {R"(UPDATE steps SET facts = '{"more":1}' WHERE seq = 1)", "more: unknown field"},
      {"DELETE FROM steps WHERE seq = 1",
       "table steps, row seq 1: column step is empty, not a number"},
      {"UPDATE subnets SET batch_digest = x'01' WHERE seq = 1",
       "table subnets, row seq 1: column batch_digest"},
  };
  for (const auto& [sql, problem] : cases) {
    SCOPED_TRACE(sql);
    const auto reader = Damage(sql);
    ASSERT_NE(reader, nullptr);
    const auto subnets = ReadSubnets(*reader);
    ASSERT_FALSE(subnets);
    EXPECT_EQ(subnets.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(subnets.error().message, HasSubstr(problem));
    EXPECT_TRUE(reader->Subnet(0, {}));
    EXPECT_FALSE(reader->Subnet(1, {}));
  }
}

TEST_F(StepDamageTest, AStepWithoutItsSubnetIsAProblem) {
  const auto reader = Damage("INSERT INTO steps VALUES (7, 70, '{}')");
  EXPECT_THAT(*reader->IntegrityProblems(),
              ElementsAre("table steps has a row of seq 7, which table subnets has not"));
}

TEST_F(StepDamageTest, TheTableIsPartOfTheSchema) {
  EXPECT_THAT(*Damage("ALTER TABLE steps ADD COLUMN more TEXT")->SchemaProblems(),
              ElementsAre("the definition of table steps was changed"));
  fs::copy_file(folder_ / "sound.db", path_, fs::copy_options::overwrite_existing);
  Tamper(path_, "DROP TABLE steps");
  EXPECT_THAT(RecordReader::Open(path_).error().message, HasSubstr("no table steps"));
}

TEST_F(StepDamageTest, OnlyStepRunsHaveTheTableAndItsVersion) {
  const auto read = [&](const fs::path& path, const char* sql) {
    return SQLite::Database(path.string()).execAndGet(sql).getInt();
  };
  WriteSample(path_, {});
  EXPECT_EQ(read(path_, "PRAGMA user_version"), 4);
  EXPECT_EQ(read(path_, "SELECT count(*) FROM sqlite_master WHERE name = 'steps'"), 0);
  EXPECT_EQ(read(folder_ / "sound.db", "PRAGMA user_version"), 5);
}

}  // namespace
}  // namespace verbatim
