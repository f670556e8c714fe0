// Proves that no result that is written to a file destroys another, and that none is left in part.
#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using testing::HasSubstr;

using OutputFile = CommandTest;

std::size_t FilesIn(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_F(OutputFile, ReplacesAFileAndKeepsItsPermissions) {
  const std::string file = WriteFile("report.txt", "a longer text");
  chmod(file.c_str(), 0640);
  ASSERT_TRUE(WriteResult("new", {"-o", file}).has_value());
  EXPECT_EQ(ReadFile(file), "new");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
  EXPECT_EQ(FilesIn(folder_), 1u);
}

TEST_F(OutputFile, WritesThroughLinksAlsoToWhatDoesNotExist) {
  fs::create_directory(Path("target"));
  fs::create_symlink("target", Path("folder"));
  fs::create_symlink("folder/report.txt", Path("link"));
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(WriteResult(text, {"-o", Path("link")}).has_value());
    EXPECT_TRUE(fs::is_symlink(Path("link")));
    EXPECT_EQ(ReadFile(Path("target/report.txt")), text);
  }
}

TEST_F(OutputFile, KeepsTheEarlierFileWhereWritingFails) {
  const std::string file = WriteFile("report.txt", "earlier");
  const Status status = WriteOutput({"--trace", file}, [](const TextSink& write) -> Status {
    RETURN_IF_ERROR(write("half of "));
    return BadInput("the record is damaged");
  });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "the record is damaged");
  EXPECT_EQ(ReadFile(file), "earlier");
  EXPECT_EQ(FilesIn(folder_), 1u);
}

TEST_F(OutputFile, KeepsTheEarlierFileWhereTheDiskIsFull) {
  const std::string file = WriteFile("report.txt", "earlier");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteResult(std::string(100'000, 'x'), {"--report", file});
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr(file + " cannot be written: "));
  EXPECT_EQ(status.error().hint, "Name another file with --report.");
  EXPECT_EQ(ReadFile(file), "earlier");
  EXPECT_EQ(FilesIn(folder_), 1u);
}

TEST_F(OutputFile, WritesAPipeItself) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int end = open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_TRUE(WriteResult("text", {"-o", pipe}).has_value());
  char bytes[8];
  EXPECT_EQ(read(end, bytes, sizeof(bytes)), 4);
  close(end);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(OutputFile, AppendsToAFileThatIsOpenAlready) {
  const std::string log = WriteFile("log", "earlier, ");
  const int descriptor = open(log.c_str(), O_WRONLY | O_APPEND);
  ASSERT_TRUE(WriteResult("new", {"-o", fmt::format("/dev/fd/{}", descriptor)}).has_value());
  close(descriptor);
  EXPECT_EQ(ReadFile(log), "earlier, new");
}

TEST_F(OutputFile, RefusesDatabasesAndTheirParts) {
  const std::string record = WriteRecord(MakeSampleRun(), "other.db");
  fs::create_hard_link(record, Path("hard.html"));
  fs::create_symlink("other.db", Path("soft.html"));
  WriteFile("a", "\x37\x7f\x06\x82 log"s);
  WriteFile("b", "\x37\x7f\x06\x83 log"s);
  WriteFile("c", "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 journal"s);
  WriteFile("d", "\x18\xe2\x2d\x00 shared memory"s);
  for (const char* name : {"other.db", "hard.html", "soft.html", "other.db-wal", "other.db-shm",
                           "other.db-journal", "soft.html-wal", "a", "b", "c", "d"}) {
    const OutputOption output{"--html", Path(name)};
    const std::string before = ReadFile(Path(name));
    for (const Status& status : {CheckOutputs({output}, {}), WriteResult("report", output)}) {
      ASSERT_FALSE(status.has_value()) << name;
      EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
      EXPECT_THAT(status.error().message, HasSubstr("--html " + Path(name)));
    }
    EXPECT_EQ(ReadFile(Path(name)), before);
  }
  WriteFile("e", "SQLite format is what this report is about");
  EXPECT_TRUE(WriteResult("report", {"-o", Path("e")}).has_value());
  EXPECT_TRUE(WriteResult("report", {"-o", Path("none.db-wal")}).has_value());
}

TEST_F(OutputFile, SaysBeforehandWhatCannotBeWritten) {
  WriteFile("file", "");
  fs::create_symlink("loop", Path("loop"));
  for (const char* name :
       {"none/report.txt", "file/report.txt", "file/a/report.txt", "file/", "none/", ".", "loop"}) {
    const OutputOption output{"--also", Path(name)};
    for (const Status& status : {CheckOutputs({output}, {}), WriteResult("report", output)}) {
      ASSERT_FALSE(status.has_value()) << name;
      EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
      EXPECT_THAT(status.error().message, HasSubstr(Path(name) + " cannot be written: "));
      EXPECT_EQ(status.error().hint, "Name another file with --also.");
    }
  }
  EXPECT_EQ(FilesIn(folder_), 2u);
}

TEST_F(OutputFile, FindsTwoOptionsThatNameOneFile) {
  WriteFile("file", "");
  fs::create_hard_link(Path("file"), Path("hard"));
  fs::create_symlink("new", Path("soft"));
  const std::pair<const char*, const char*> pairs[] = {
      {"new", "new"}, {"new", "./new"}, {"file", "hard"}, {"soft", "new"}};
  for (const auto& [a, b] : pairs) {
    const Status status = CheckOutputs({{"-o", Path(a)}, {"", ""}, {"--also", Path(b)}}, {});
    ASSERT_FALSE(status.has_value()) << a << " " << b;
    EXPECT_EQ(status.error().message,
              fmt::format("-o {} and --also {} are one file", Path(a), Path(b)));
  }
  EXPECT_TRUE(CheckOutputs({{"-o", Path("new")}, {"--also", Path("file")}}, {}).has_value());
}

// As each command passes its options on: none of them does any work.
TEST_F(OutputFile, EveryCommandRefusesBeforeTheWork) {
  const std::string a = WriteRecord(MakeSampleRun(), "a.db");
  const std::string b = WriteRecord(MakeSampleRun(), "b.db");
  const std::string other = WriteRecord(MakeSampleRun(), "other.txt");
  const std::string none = Path("none/a.html");
  const std::string twice = Path("twice.txt");
  const struct {
    int exit_code;
    std::vector<std::string> arguments;
  } cases[] = {
      {2, {"verify", a, "--reexecute", "all", "-o", other}},
      {2, {"verify", a, "--reexecute", "all", "--also", other}},
      {2, {"verify", a, "--reexecute", "all", "-o", twice, "--also", twice}},
      {2, {"verify", a, "--reexecute", "all", "--also", twice, "--also", twice}},
      {4, {"verify", a, "--reexecute", "all", "-o", none}},
      {4, {"verify", a, "--reexecute", "all", "--also", none}},
      {2, {"replay", a, "--report", other}},
      {2, {"replay", a, "-o", twice, "--report", twice}},
      {2, {"replay", a, "-o", twice, "--also", twice}},
      {2, {"replay", a, "-o", b}},
      {2, {"replay", a, "-o", Path("none/replayed.db")}},
      {4, {"replay", a, "--report", none}},
      {2, {"diff", a, b, "-o", other}},
      {2, {"diff", a, b, "-o", twice, "--also", twice}},
      {4, {"diff", a, b, "--also", none}},
      {2, {"show", a, "--html", other}},
      {2, {"show", a, "--trace", b}},
      {2, {"show", a, "--html", twice, "--trace", twice}},
      {4, {"show", a, "--html", twice, "--trace", none}},
  };
  for (const auto& [exit_code, arguments] : cases) {
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << testing::PrintToString(arguments) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(twice)) << testing::PrintToString(arguments);
  }
  EXPECT_TRUE(engine_.reexecute_options.subnets.empty());
  EXPECT_EQ(Run({"verify", b}).exit_code, 0);
  EXPECT_EQ(Run({"verify", other}).exit_code, 0);
}

TEST_F(OutputFile, NoOptionTakesAnEmptyPath) {
  const std::string a = WriteRecord(MakeSampleRun(), "a.db");
  const std::string b = WriteRecord(MakeSampleRun(), "b.db");
  const std::vector<std::vector<std::string>> cases = {
      {"verify", a, "--against"}, {"verify", a, "--output"},
      {"verify", a, "--also"},    {"verify", a, "--data"},
      {"replay", a, "--output"},  {"replay", a, "--report"},
      {"replay", a, "--also"},    {"replay", a, "--data"},
      {"diff", a, b, "--output"}, {"diff", a, b, "--also"},
      {"diff", a, b, "--data"},   {"show", a, "--html"},
      {"show", a, "--trace"},     {"train", "spec.json", "--record", "off", "--output"},
      {"doctor", a, "--data"},    {"check", "spec.json", "--data"}};
  for (std::vector<std::string> arguments : cases) {
    const std::string option = arguments.back();
    arguments.emplace_back("");
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(arguments) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(option + ": ")) << testing::PrintToString(arguments);
  }
}

TEST_F(OutputFile, FurtherReportsNeedANameAndAnEndingInAnyCase) {
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_EQ(Run({"verify", record, "--also", Path("A.HTML")}).exit_code, 0);
  EXPECT_THAT(ReadFile(Path("A.HTML")), testing::StartsWith("<!doctype html>"));
  for (const std::string& file : {".md"s, Path(".Html")}) {
    const CommandResult result = Run({"verify", record, "--also", file});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(file + "' is an ending without a name before it"));
  }
}

}  // namespace
}  // namespace verbatim
