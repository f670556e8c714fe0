// Proves what `verbatim doctor` says of the machine, the engine and records, and how it asks an
// engine. That a record can be re-executed is proved end to end, where there is an engine.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/processor.h"
#include "cli/engine_process.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::Not;

class DoctorCommand : public CommandTest {
 protected:
  DoctorCommand() { engine_.computed.environment.push_back({"libtorch.version", "9.9"}); }

  nlohmann::json Json(std::vector<std::string> arguments, int exit_code) {
    arguments.insert(arguments.begin(), "doctor");
    arguments.insert(arguments.end(), {"--format", "json"});
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return nlohmann::json::parse(result.out);
  }
  /// All that stands in the way of one record.
  std::string Problems(const SampleRun& recorded) {
    std::filesystem::remove(Path("run.db"));
    const nlohmann::json json = Json({WriteRecord(recorded)}, 1);
    EXPECT_FALSE(json["records"][0]["can_reexecute"]);
    std::string problems;
    for (const auto& obstacle : json["records"][0]["obstacles"]) {
      problems += obstacle["problem"].get<std::string>() + "\n";
    }
    return problems;
  }
  std::string WriteScript(const std::string& lines) const {
    const std::string path = WriteFile("engine", "#!/bin/sh\n" + lines);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
};

TEST_F(DoctorCommand, DescribesTheMachineAndTheEngine) {
  engine_.devices = {"cpu", "cuda:0 (Some GPU)"};
  const CommandResult result = Run({"doctor"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(DescribeProcessor().model));
  EXPECT_THAT(result.out, HasSubstr("LibTorch         9.9, kernels for unknown"));
  EXPECT_THAT(result.out, HasSubstr("devices          cpu, cuda:0 (Some GPU)"));
  EXPECT_THAT(result.out, HasSubstr("CUDA             1 device"));
  EXPECT_THAT(result.out, HasSubstr("native           can be computed here"));
  EXPECT_THAT(result.out, Not(HasSubstr("re-executed")));
}

TEST_F(DoctorCommand, DescribesThemAsJson) {
  const nlohmann::json json = Json({}, 0);
  EXPECT_EQ(json["format"], "verbatim-doctor");
  EXPECT_EQ(json["machine"]["model"], DescribeProcessor().model);
  EXPECT_GE(json["machine"]["cores"], 1);
  EXPECT_GT(json["machine"]["memory_bytes"], 1 << 20);
  EXPECT_EQ(json["engine"]["environment"]["libtorch.version"], "9.9");
  EXPECT_EQ(json["profiles"].size(), 3u);
  EXPECT_TRUE(json["profiles"][0]["available"]);
  EXPECT_TRUE(json["records"].empty());
}

TEST_F(DoctorCommand, WorksWithoutAnEngineAndSaysSo) {
  const CommandResult alone = RunWith(nullptr, {"doctor"});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("program          none"));
  EXPECT_THAT(alone.out, HasSubstr("verbatim-engine was not found"));
  const CommandResult result = RunWith(nullptr, {"doctor", WriteRecord(MakeSampleRun())});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("environment      not known"));
  EXPECT_THAT(result.out, HasSubstr("0 of 1 record can be re-executed here"));
}

TEST_F(DoctorCommand, AsksForTheRecordedThreads) {
  Json({WriteRecord(MakeSampleRun())}, 1);
  EXPECT_EQ(engine_.described_threads, 3);
}

TEST_F(DoctorCommand, FindsWhatStandsInTheWay) {
  const SampleRun sample = MakeSampleRun();
  EXPECT_THAT(Problems(sample), HasSubstr("/tmp/data"));
  EXPECT_THAT(Problems(sample), Not(HasSubstr("environment")));
  SampleRun elsewhere = sample;
  elsewhere.environment[0].value = "Other CPU";
  EXPECT_THAT(Problems(elsewhere), HasSubstr("cpu.model: recorded Other CPU, here Sample CPU"));
  SampleRun gpu = sample;
  gpu.run.device = "cuda:1";
  EXPECT_THAT(Problems(gpu), HasSubstr("made on cuda:1; the engine can use here: cpu"));
}

TEST_F(DoctorCommand, ReportsTheRecordsAndRefusesWhatIsNone) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::string spec = WriteFile("spec.json", "{}");
  const CommandResult result = Run({"doctor", record, spec, Path("none.db")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr("Record " + record + ": sample"));
  EXPECT_THAT(result.out, HasSubstr("0 of 3 records can be re-executed here"));
  EXPECT_THAT(result.err, HasSubstr(spec));
  EXPECT_THAT(result.err, HasSubstr(Path("none.db") + " does not exist"));
  const nlohmann::json json = Json({spec, record}, 3);
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["records"].size(), 1u);
  ASSERT_EQ(json["unreadable"].size(), 1u);
  EXPECT_THAT(json["unreadable"][0].get<std::string>(), HasSubstr(spec));
  const CommandResult alone = Run({"doctor", spec});
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_EQ(alone.out, "");
}

TEST_F(DoctorCommand, SaysThatItDoesNotLookAtIntegrity) {
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_THAT(Run({"doctor", record}).out,
              HasSubstr("integrity        not looked at; verbatim verify " + record + " does"));
  EXPECT_EQ(Json({record}, 1)["records"][0]["integrity"], "not looked at");
}

TEST_F(DoctorCommand, AsksAnEngineUnderTheProfilesVariables) {
  const std::string script = WriteScript(
      "printf '{\"environment\": {\"capability\": \"%s\", \"arguments\": \"%s\"},' "
      "\"$ATEN_CPU_CAPABILITY\" \"$*\"\n"
      "printf '\"devices\": [\"cpu\"]}'\n");
  const auto answer = AskEngine(script, Numerics::kX8664V3, "cpu", 2);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_EQ(answer->environment.size(), 2u);
  EXPECT_EQ(answer->environment[0].value, "avx2");
  EXPECT_EQ(answer->environment[1].value, "doctor --describe-engine cpu --threads-per-stage 2");
  EXPECT_EQ(answer->devices, std::vector<std::string>{"cpu"});
  EXPECT_EQ(std::getenv("ATEN_CPU_CAPABILITY"), nullptr);
}

TEST_F(DoctorCommand, ReadsBackWhatAnEngineWrites) {
  const EngineDescription description = {
      {{"a", "x \"y\""}, {"b", ""}}, {"cpu", "cuda:0 (GPU)"}, "1 device"};
  const std::string script =
      WriteScript("cat '" + WriteFile("answer", EngineDescriptionJson(description)) + "'\n");
  const auto answer = AskEngine(script, Numerics::kNative, "cpu", 1);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->environment, description.environment);
  EXPECT_EQ(answer->devices, description.devices);
  EXPECT_EQ(answer->cuda, "1 device");
}

TEST_F(DoctorCommand, SaysWhyAnEngineDidNotAnswer) {
  const struct {
    const char* lines;
    const char* message;
  } cases[] = {
      {"exit 5\n", "ended with exit code 5"},
      {"kill -9 $$\n", "was ended by signal 9"},
      {"echo hello\n", "is no verbatim-engine of this version"},
      {"echo '{\"environment\": {\"a\": 1}, \"devices\": []}'\n", "is no verbatim-engine"}};
  for (const auto& [lines, message] : cases) {
    const auto answer = AskEngine(WriteScript(lines), Numerics::kNative, "cpu", 1);
    ASSERT_FALSE(answer.has_value()) << lines;
    EXPECT_EQ(answer.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(answer.error().message, HasSubstr(message));
  }
  const auto missing = AskEngine("/nowhere/engine", Numerics::kNative, "cpu", 1);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/engine cannot be started"));
}

TEST_F(DoctorCommand, IsTheEnginesAnswerToItself) {
  const CommandResult result =
      Run({"doctor", "--describe-engine", "cpu", "--threads-per-stage", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["environment"]["libtorch.version"], "9.9");
  EXPECT_EQ(engine_.described_threads, 4);
  EXPECT_EQ(RunWith(nullptr, {"doctor", "--describe-engine", "cpu"}).exit_code, 4);
}

}  // namespace
}  // namespace verbatim
