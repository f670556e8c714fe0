// Proves `verbatim verify` on records in files: verdicts, exit codes, reports and re-execution.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "recorder/part_file.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

using VerifyCommand = CommandTest;

TEST_F(VerifyCommand, FindsASoundRecordIntact) {
  const SampleRun sample = MakeSampleRun();
  const CommandResult result = Run({"verify", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, EndsWith("\n12 subnets, " + std::to_string(CountAccesses(sample)) +
                                   " accesses: intact and causal (not re-executed)\n"));
}

TEST_F(VerifyCommand, FindsAViolation) {
  SampleRun sample = MakeSampleRun();
  sample.subnets[9].accesses[0].read_seq = 6;
  const CommandResult result = Run({"verify", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("subnet 9 read stem at version 6 on stage 0; its causal "
                                    "predecessor is subnet 8"));
}

TEST_F(VerifyCommand, FindsDamage) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.pop_back();
  const CommandResult result = Run({"verify", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, EndsWith("the record is damaged\n"));
}

/// What a rank that ran the sample's second stage kept.
std::string PartFileOf(const SampleRun& sample) {
  std::string bytes = EncodePartHead() + EncodeFrame(PartSession{SpecDigest(sample.run.spec_json),
                                                                 1, 2, "node-7", "2026-01-31"});
  for (const SubnetRow& row : sample.subnets) {
    RankReport report;
    for (const AccessRow& access : row.accesses) {
      if (access.stage == 1) report.accesses.push_back(access);
    }
    bytes += EncodeFrame(row.seq, EncodeReport(row.seq, report));
  }
  return bytes;
}

TEST_F(VerifyCommand, ComparesWithWhatARankKept) {
  SampleRun sample = MakeSampleRun();
  const std::string part = PartFileOf(sample);
  const std::string file = WriteFile("run.db.rank-1", part);
  const CommandResult equal = Run({"verify", WriteRecord(sample), "--part", file});
  EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;
  EXPECT_THAT(equal.out, HasSubstr("passed   parts        12 parts compared, of rank 1"));

  sample.subnets[7].accesses.back().weights->bytes[0] ^= 1;
  const std::string forged = WriteRecord(sample, "forged.db");  // agrees with itself
  EXPECT_EQ(Run({"verify", forged}).exit_code, 0);
  for (const char* format : {"text", "json", "junit", "markdown", "html"}) {
    const CommandResult result = Run({"verify", forged, "--part", file, "--format", format});
    EXPECT_EQ(result.exit_code, 1) << format << result.err;
    EXPECT_THAT(result.out, HasSubstr("damaged or forged")) << format;
    EXPECT_THAT(result.out, HasSubstr("run.db.rank-1")) << format;
  }
}

TEST_F(VerifyCommand, RefusesWhatIsNoPartOfTheRun) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::string good = PartFileOf(MakeSampleRun());
  SampleRun stranger = MakeSampleRun();
  stranger.run.spec_json += " ";
  const struct {
    std::string content;
    const char* message;
  } cases[] = {{"", "is empty"},
               {"SQLite format 3", "is no rank's part file"},
               {good.substr(0, 40), "is cut off"},
               {PartFileOf(stranger), "of a run with another spec"}};
  for (const auto& [content, message] : cases) {
    const CommandResult result = Run({"verify", record, "--part", WriteFile("part", content)});
    EXPECT_EQ(result.exit_code, 3) << message;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  EXPECT_EQ(Run({"verify", record, "--part", Path("missing")}).exit_code, 3);
  const std::string file = WriteFile("part", good);
  EXPECT_EQ(Run({"verify", record, "--part", file, "-o", file}).exit_code, 2);
  EXPECT_EQ(Run({"verify", record, "--part"}).exit_code, 2);
  EXPECT_EQ(ReadFile(file), good);
}

TEST_F(VerifyCommand, WritesFurtherReportsInTheFormatOfTheirNames) {
  const std::string record = WriteRecord(MakeSampleRun());
  const struct {
    const char* name;
    const char* begin;
  } files[] = {{"a.txt", "Record "},
               {"a.json", "{"},
               {"a.xml", "<?xml"},
               {"a.md", "#"},
               {"a.html", "<!doctype html>"}};
  std::vector<std::string> arguments{"verify", record};
  for (const auto& [name, begin] : files) arguments.insert(arguments.end(), {"--also", Path(name)});
  const CommandResult result = Run(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, Run({"verify", record}).out);
  for (const auto& [name, begin] : files) {
    EXPECT_THAT(ReadFile(Path(name)), testing::StartsWith(begin)) << name;
  }
  EXPECT_EQ(ReadFile(Path("a.txt")), result.out);
}

TEST_F(VerifyCommand, RefusesFurtherReportsThatItCannotWrite) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult unknown = Run({"verify", record, "--also", Path("a.pdf")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("a.pdf' ends in none of .txt"));
  EXPECT_EQ(Run({"verify", record, "--also", Path("none/a.txt")}).exit_code, 4);
  std::filesystem::create_symlink(record, Path("link.txt"));
  const CommandResult itself = Run({"verify", record, "--also", Path("link.txt")});
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_THAT(itself.err, HasSubstr("is the record itself"));
}

TEST_F(VerifyCommand, RefusesWhatIsNoRecord) {
  for (const std::string& path : {Path("none.db"), WriteFile("text.db", "no database")}) {
    const CommandResult result = Run({"verify", path});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(path));
  }
}

TEST_F(VerifyCommand, ReexecutesAllAndFindsItEqual) {
  const CommandResult result = Run({"verify", WriteRecord(MakeSampleRun()), "--reexecute", "all"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, EndsWith("accesses: equal to the sequential reference\n"));
  EXPECT_THAT(result.out, HasSubstr("12 subnets equal to the sequential reference, and the "
                                    "evaluations"));
  EXPECT_EQ(engine_.reexecute_options.subnets.size(), 12);
  EXPECT_EQ(engine_.reexecute_options.threads_per_stage, 3);
  EXPECT_TRUE(engine_.reexecute_options.evaluate);
}

TEST_F(VerifyCommand, ReexecutesInLittleMemory) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult result =
      Run({"verify", record, "--reexecute", "all", "--device-memory", "2MiB"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(engine_.reexecute_options.device_memory, 2 << 20);
  EXPECT_EQ(Run({"verify", record, "--device-memory", "2MiB"}).exit_code, 2);
}

TEST_F(VerifyCommand, WritesTheFormatThatWasAskedFor) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::pair<const char*, const char*> starts[] = {{"text", "Record "},
                                                        {"json", "{\n  \"format\""},
                                                        {"junit", "<?xml version"},
                                                        {"markdown", "### ✅ intact"},
                                                        {"html", "<!doctype html>"}};
  for (const auto& [format, start] : starts) {
    const CommandResult result = Run({"verify", record, "--format", format});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, testing::StartsWith(start));
  }
  EXPECT_EQ(Run({"verify", record, "--format", "yaml"}).exit_code, 2);
}

TEST_F(VerifyCommand, ReexecutesADrawWithItsCones) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult result =
      Run({"verify", record, "--reexecute", "1", "--draw-seed", "3", "--data", folder_});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const auto& subnets = engine_.reexecute_options.subnets;
  EXPECT_THAT(result.out,
              HasSubstr(fmt::format("re-executed {} of 12 subnets (1 drawn by seed 3, with their "
                                    "causal cones), equal to the sequential reference",
                                    subnets.size())));
  EXPECT_THAT(result.out, HasSubstr("Had 100.0 % of the subnets been faulty"));
  EXPECT_LT(subnets.size(), 12u);
  EXPECT_FALSE(engine_.reexecute_options.evaluate);
  EXPECT_EQ(engine_.reexecute_options.data_folder, std::filesystem::path(folder_));
}

TEST_F(VerifyCommand, TakesEverySeedOf64BitsAndNoOther) {
  const std::string record = WriteRecord(MakeSampleRun());
  const auto verify = [&](const std::string& seed) {
    return Run({"verify", record, "--reexecute", "1", "--draw-seed", seed, "--data", folder_});
  };
  const CommandResult largest = verify("18446744073709551615");
  EXPECT_EQ(largest.exit_code, 0) << largest.err;
  EXPECT_THAT(largest.out, HasSubstr("drawn by seed 18446744073709551615"));
  for (const char* seed : {"-1", "18446744073709551616", "99999999999999999999", "010", "1.5", "x",
                           "0x10", "1 ", ""}) {
    const CommandResult refused = verify(seed);
    EXPECT_EQ(refused.exit_code, 2) << seed;
    EXPECT_THAT(refused.err, HasSubstr("is no whole number from 0 to 18446744073709551615"));
  }
}

TEST_F(VerifyCommand, ReexecutesNoMoreThanAnInterruptedRunHas) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kInterrupted;
  sample.subnets.resize(4);
  sample.evaluations.clear();
  const CommandResult result = Run({"verify", WriteRecord(sample), "--reexecute", "all"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(engine_.reexecute_options.subnets.size(), 4);
  EXPECT_THAT(result.out, HasSubstr("The run was interrupted after 4 of 12 subnets."));
}

TEST_F(VerifyCommand, FindsAComputationThatDiffers) {
  engine_.computed.subnets[3].loss_bits ^= 1;
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult result = Run({"verify", record, "--reexecute", "all"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("First difference: subnet 3, forward, computation"));
  EXPECT_THAT(result.out,
              HasSubstr("next      verbatim replay " + record + " --subnet 3 --explain"));
}

TEST_F(VerifyCommand, SaysThatTheEnvironmentDiffersBeforeAnythingElse) {
  engine_.computed.environment[0].value = "Other CPU";
  engine_.computed.subnets[3].loss_bits ^= 1;
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult refused = Run({"verify", record, "--reexecute", "all"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("Other CPU"));
  const CommandResult result = Run({"verify", record, "--reexecute", "all", "--any-environment"});
  EXPECT_EQ(result.exit_code, 1);
  const auto environment = result.out.find("The environment is not the recorded one");
  ASSERT_NE(environment, std::string::npos);
  EXPECT_LT(environment, result.out.find("First difference: subnet 3, forward, environment"));
}

TEST_F(VerifyCommand, DoesNotReexecuteADamagedRecord) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.pop_back();
  EXPECT_EQ(Run({"verify", WriteRecord(sample), "--reexecute", "all"}).exit_code, 3);
  EXPECT_TRUE(engine_.reexecute_options.subnets.empty());
}

TEST_F(VerifyCommand, ReturnsTheEnginesError) {
  engine_.reexecute_status = BadInput("the data is missing");
  const CommandResult result = Run({"verify", WriteRecord(MakeSampleRun()), "--reexecute", "all"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("the data is missing"));
}

TEST_F(VerifyCommand, WritesJsonToAFile) {
  const std::string report = Path("verdict.json");
  const CommandResult result =
      Run({"verify", WriteRecord(MakeSampleRun()), "--format", "json", "-o", report});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  const auto json = nlohmann::json::parse(ReadFile(report));
  EXPECT_EQ(json["verdict"], "intact");
  EXPECT_EQ(json["tool_version"], "0.1.0");
}

TEST_F(VerifyCommand, ReportsAFileThatCannotBeWritten) {
  const std::string record = WriteRecord(MakeSampleRun());
  for (const std::string& report : {Path("none/verdict.txt"), std::string("/dev/full")}) {
    const CommandResult result = Run({"verify", record, "-o", report});
    EXPECT_EQ(result.exit_code, 4) << report;
    EXPECT_THAT(result.err, HasSubstr(report + " cannot be written"));
  }
}

TEST_F(VerifyCommand, DoesNotWriteItsReportOverTheRecord) {
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_EQ(Run({"verify", record, "-o", record}).exit_code, 2);
  EXPECT_EQ(Run({"verify", record}).exit_code, 0);
}

TEST_F(VerifyCommand, DoesNotWriteAReportOverTheReference) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::string reference = WriteRecord(MakeSampleRun(), "reference.db");
  EXPECT_EQ(Run({"verify", record, "--against", reference, "-o", reference}).exit_code, 2);
  EXPECT_EQ(Run({"verify", reference}).exit_code, 0);
}

TEST_F(VerifyCommand, ExplainsTheFirstDifferenceAlsoWhereTheReferenceShowsIt) {
  SampleRun other = MakeSampleRun();
  other.subnets[2].loss_bits ^= 1;
  Seal(other);
  const std::vector<std::string> words{
      "verify",    WriteRecord(MakeSampleRun()),       "--reexecute", "all", "--explain",
      "--against", WriteRecord(other, "reference.db"), "--format",    "json"};
  const CommandResult of_reference = Run(words);
  EXPECT_EQ(of_reference.exit_code, 1) << of_reference.err;
  const auto reference = nlohmann::json::parse(of_reference.out);
  EXPECT_EQ(reference["first_difference"]["subnet"], 2);
  EXPECT_EQ(reference["explanation"]["subnet"], 2);
  EXPECT_THAT(reference["summary"].get<std::string>(),
              HasSubstr("equal to the sequential reference; not equal to "));
  // The reference may be at fault for its difference; the record alone is for its own.
  engine_.computed.subnets[6].loss_bits ^= 1;
  const auto own = nlohmann::json::parse(Run(words).out);
  EXPECT_EQ(own["first_difference"]["subnet"], 6);
  EXPECT_EQ(own["explanation"]["subnet"], 6);
  EXPECT_THAT(own["summary"].get<std::string>(),
              HasSubstr("not equal to the sequential reference"));
}

TEST_F(VerifyCommand, WithoutAnEngineReexecutionSaysHowToGetOne) {
  const CommandResult result =
      RunWith(nullptr, {"verify", WriteRecord(MakeSampleRun()), "--reexecute", "all"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("verbatim-engine"));
}

}  // namespace
}  // namespace verbatim
