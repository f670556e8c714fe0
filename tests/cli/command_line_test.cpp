// Proves what every command line promises: exit codes, what goes to which stream, and help.
#include "cli/command_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "cli/output.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ForTerminal, LeavesNothingThatSteersATerminal) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(ForTerminal("two\nlines\tand \"é…\""), "two\nlines\tand \"é…\"");
  EXPECT_EQ(ForTerminal("a\x1b[2Jb\rc\x7f"), "a" + bad + "[2Jb" + bad + "c" + bad);
  EXPECT_EQ(ForTerminal("a\xc2\x9b"
                        "2Jb\xc2\xa0"),
            "a" + bad + "2Jb\xc2\xa0");
  EXPECT_EQ(ForTerminal("\xc2"), "\xc2");
}

TEST_F(CommandTest, PrintsNoControlCharactersOfAPath) {
  const CommandResult result = Run({"verify", Path("a\x1b[31m.db")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("a\xef\xbf\xbd[31m.db"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("\x1b")));
}

TEST_F(CommandTest, PrintsItsVersion) {
  const CommandResult result = Run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "verbatim 0.1.0\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(CommandTest, HelpNamesSubcommandsAndExitCodes) {
  const CommandResult result = Run({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* text :
       {"check", "train", "verify", "show", "Exit codes:", "  4  the run failed"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST_F(CommandTest, EverySubcommandHasExamplesForItsOptions) {
  const std::pair<const char*, int> cases[] = {
      {"check", 1}, {"train", 13}, {"verify", 5}, {"show", 4}};
  for (const auto& [command, examples] : cases) {
    const CommandResult result = Run({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("Examples:\n  verbatim " + std::string(command)));
    int count = 0;
    for (std::size_t at = 0; (at = result.out.find("Example:", at)) != std::string::npos; ++at) {
      ++count;
    }
    EXPECT_GE(count, examples) << command;
  }
}

TEST_F(CommandTest, NoSubcommandShowsHelpAsWrongUsage) {
  const CommandResult result = Run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("verify"));
}

TEST_F(CommandTest, CountsHaveLimitsThatAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--stages", "0"}, "'0' is no whole number from 1 to 1,048,576"},
      {{"--in-flight", "-1"}, "'-1' is no whole number from 1 to 4,294,967,295"},
      {{"--threads-per-stage", "1025"}, "'1025' is no whole number from 1 to 1,024"},
      {{"--subnets", "4294967296"}, "'4294967296' is no whole number from 1 to 4,294,967,295"},
      {{"--subnets", "1.5"}, "'1.5' is no whole number from 1 to 4,294,967,295"},
      {{"--subnets", "99999999999999999999"}, "'99999999999999999999' is no whole number"},
  };
  for (const auto& [options, message] : cases) {
    std::vector<std::string> arguments = {"train", "spec.json", "-o", "run.db"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << options[0];
    EXPECT_THAT(result.err, HasSubstr(options[0] + ": " + message));
  }
}

TEST_F(CommandTest, MemoryIsSaidInBytesAndTheirMultiples) {
  const std::string spec = WriteFile("spec.json", SampleSpecText());
  const auto train = [&](const std::string& bytes) {
    return Run({"train", spec, "--record", "off", "--device-memory", bytes});
  };
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"1", 1},
      {"67108864", 67108864},
      {"64KiB", 65536},
      {"64MiB", 67108864},
      {"3GiB", std::int64_t{3} << 30},
      {"8589934591GiB", std::int64_t{8589934591} << 30}};
  for (const auto& [text, bytes] : cases) {
    ASSERT_EQ(train(text).exit_code, 0) << text;
    EXPECT_EQ(engine_.train_request.layout.device_memory, bytes) << text;
  }
  for (const std::string text : {"", "0", "-1", "64MB", "64 MiB", "MiB", "1.5GiB", "064", "64mib",
                                 "8589934592GiB", "9223372036854775808", "1MiBx"}) {
    const CommandResult result = train(text);
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_THAT(result.err, HasSubstr("--device-memory")) << text;
    EXPECT_THAT(result.err, HasSubstr("such as 67108864 or 64MiB")) << text;
  }
}

TEST_F(CommandTest, WrongUsageGivesExitCode2) {
  const std::vector<std::vector<std::string>> cases = {
      {"verify"},
      {"verify", "run.db", "--nonsense"},
      {"verify", "run.db", "--reexecute", "some"},
      {"verify", "run.db", "--reexecute", "0"},
      {"verify", "run.db", "--format", "xml"},
      {"show", "run.db", "--subnet", "-1"},
      {"show", "run.db", "--subnet", "1", "--layer", "stem"},
      {"train", "spec.json", "-o", "run.db", "--stages", "0"},
      {"train", "spec.json", "-o", "run.db", "--stages", "two"},
      {"train", "spec.json", "-o", "run.db", "--device", "tpu"},
      {"train", "spec.json", "-o", "run.db", "--device", "cuda:x"},
      {"train", "spec.json", "-o", "run.db", "--policy", "greedy"},
      {"train", "spec.json", "-o", "run.db", "--record", "all"},
      {"check"},
      {"check", "a.json", "b.json"},
  };
  for (const auto& arguments : cases) {
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("verbatim: error: "));
    EXPECT_THAT(result.err, HasSubstr("verbatim " + arguments[0] + " --help"));
  }
  EXPECT_EQ(engine_.trained, 0);
}

TEST_F(CommandTest, SuggestsTheSubcommandThatWasMeant) {
  const CommandResult result = Run({"verfy", "run.db"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown command 'verfy'"));
  EXPECT_THAT(result.err, HasSubstr("did you mean \"verify\"?"));
}

TEST_F(CommandTest, TranslatesWhatALibraryThrows) {
  class ThrowingEngine : public FakeEngine {
    Status Train(const TrainRequest&) override { throw std::runtime_error("boom"); }
  } engine;
  const std::string spec = WriteFile("spec.json", SampleSpecText());
  const CommandResult result = RunWith(&engine, {"train", spec, "--record", "off"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("internal error: boom"));
}

TEST(WriteToStdout, TakesAClosedPipeForDone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const int saved = dup(STDOUT_FILENO);
  std::fflush(stdout);
  dup2(ends[1], STDOUT_FILENO);
  std::signal(SIGPIPE, SIG_IGN);
  const Status status = WriteToStdout(std::string(100000, 'x'));
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(ends[1]);
  EXPECT_TRUE(status.has_value());
}

TEST(WriteToStdout, ReportsAFullDisk) {
  const int saved = dup(STDOUT_FILENO);
  std::fflush(stdout);
  const int full = open("/dev/full", O_WRONLY);
  dup2(full, STDOUT_FILENO);
  const Status status = WriteToStdout("text");
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(full);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace verbatim
