// Proves `verbatim diff` on records in files: verdicts, exit codes, reports and bad input.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class DiffCommand : public CommandTest {
 protected:
  /// Two runs of which the second flipped a bit of the stem in subnet 5, and lost it in subnet 6.
  CommandResult RunOnDifferent(std::vector<std::string> options = {}) {
    SampleRun b = MakeSampleRun();
    b.subnets[5].accesses[0].weights->bytes[3] ^= 1;
    b.subnets[6].loss_bits ^= 1;
    options.insert(options.begin(),
                   {"diff", WriteRecord(MakeSampleRun(), "a.db"), WriteRecord(b, "b.db")});
    return Run(options);
  }
};

TEST_F(DiffCommand, FindsEqualRecordsEqual) {
  SampleRun other = MakeSampleRun();
  other.run.stages = 3;
  const CommandResult result =
      Run({"diff", WriteRecord(MakeSampleRun(), "a.db"), WriteRecord(other, "b.db")});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("  stages: A 2, B 3\n"));
  EXPECT_THAT(result.out, EndsWith(" accesses compared: equal\n"));
}

TEST_F(DiffCommand, NamesTheFirstDifferenceAndWhatFollows) {
  const CommandResult result = RunOnDifferent();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("First difference: subnet 5, layer stem, update, computation"));
  EXPECT_THAT(result.out, HasSubstr("the weights alone are not"));
  EXPECT_THAT(result.out, HasSubstr("\n1 origin\n"));
  EXPECT_THAT(result.out, HasSubstr("\n1 tainted subnet of 12: 6\n"));
  EXPECT_THAT(result.out, HasSubstr("next      verbatim diff " + Path("a.db") + " " + Path("b.db") +
                                    " --explain\n"));
}

TEST_F(DiffCommand, WritesJsonToAFile) {
  const CommandResult result = RunOnDifferent({"--format", "json", "-o", Path("diff.json")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  const auto json = nlohmann::json::parse(ReadFile(Path("diff.json")));
  EXPECT_EQ(json["kind"], "diff");
  EXPECT_EQ(json["record"], Path("a.db"));
  EXPECT_EQ(json["reference"], Path("b.db"));
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["first_difference"]["subnet"], 5);
  const auto& comparison = json["comparison"];
  EXPECT_EQ(comparison["subnets_compared"], 12);
  EXPECT_EQ(comparison["subnets_equal"], 10);
  EXPECT_EQ(comparison["origins"][0]["layer_name"], "stem");
  EXPECT_EQ(comparison["tainted"], nlohmann::json::parse("[[6, 6]]"));
  EXPECT_EQ(comparison["layers"][0]["first_subnet"], 5);
}

TEST_F(DiffCommand, WritesEveryFormat) {
  for (const char* format : {"junit", "markdown", "html"}) {
    const CommandResult result = RunOnDifferent({"--format", format, "-o", Path(format)});
    EXPECT_EQ(result.exit_code, 1) << format << result.err;
    EXPECT_THAT(ReadFile(Path(format)), HasSubstr("subnet 5")) << format;
    std::filesystem::remove(Path("a.db"));
    std::filesystem::remove(Path("b.db"));
  }
}

TEST_F(DiffCommand, RefusesOneRecordTwice) {
  const std::string record = WriteRecord(MakeSampleRun());
  std::filesystem::create_hard_link(record, Path("link.db"));
  for (const std::string& other : {record, Path("link.db"), folder_ + "/./run.db"}) {
    const CommandResult result = Run({"diff", record, other});
    EXPECT_EQ(result.exit_code, 2) << other;
    EXPECT_THAT(result.err, HasSubstr("are the same file"));
  }
}

TEST_F(DiffCommand, RefusesWhatIsNoRecord) {
  const std::string record = WriteRecord(MakeSampleRun());
  for (const std::string& path :
       {Path("none.db"), WriteFile("empty.db", ""), WriteFile("text.db", "no database")}) {
    for (const auto& arguments : {std::vector<std::string>{"diff", record, path},
                                  std::vector<std::string>{"diff", path, record}}) {
      const CommandResult result = Run(arguments);
      EXPECT_EQ(result.exit_code, 3) << path;
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err, HasSubstr(path));
    }
  }
}

TEST_F(DiffCommand, RefusesARecordOfAnotherFormatVersion) {
  const std::string record = WriteRecord(MakeSampleRun(), "a.db");
  const std::string older = WriteRecord(MakeSampleRun(), "b.db");
  SQLite::Database(older, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 1");
  const CommandResult result = Run({"diff", record, older});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("b.db has format version 1"));
}

TEST_F(DiffCommand, SaysWhichRecordIsDamaged) {
  const std::string record = WriteRecord(MakeSampleRun(), "a.db");
  const std::string edited = WriteRecord(MakeSampleRun(), "b.db");
  SQLite::Database(edited, SQLite::OPEN_READWRITE)
      .exec("UPDATE subnets SET loss_bits = 7 WHERE seq = 4");
  const CommandResult result = Run({"diff", record, edited});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr("FAILED   record B"));
  EXPECT_THAT(result.out, HasSubstr("subnet 4: its row was changed"));
  EXPECT_THAT(result.out, EndsWith("record B is damaged, so nothing was compared\n"));
}

TEST_F(DiffCommand, DoesNotWriteItsReportOverARecord) {
  const std::string a = WriteRecord(MakeSampleRun(), "a.db");
  const std::string b = WriteRecord(MakeSampleRun(), "b.db");
  std::filesystem::create_symlink(b, Path("link.txt"));
  EXPECT_EQ(Run({"diff", a, b, "--also", Path("link.txt")}).exit_code, 2);
  for (const std::string& output : {a, b, b + "-wal"}) {
    EXPECT_EQ(Run({"diff", a, b, "-o", output}).exit_code, 2);
  }
  EXPECT_EQ(Run({"diff", a, b}).exit_code, 0);
}

}  // namespace
}  // namespace verbatim
