// Proves what `verbatim show` says of a run, a subnet and a layer.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

using ShowCommand = CommandTest;

TEST_F(ShowCommand, SummarisesARun) {
  const CommandResult result = Run({"show", WriteRecord(MakeSampleRun())});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {": sample\n", "status    complete", "layout    2 stages on cpu, policy causal",
        "subnets   12 of 12,", "layers    11, 8 versioned", "loss      first 2, last 2,",
        "accuracy  mean 70.50 %, min 70.00 %, max 71.00 % of 2 subnets",
        "  cpu.model: Sample CPU\n"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST_F(ShowCommand, SummarisesARunAsJson) {
  const auto json =
      nlohmann::json::parse(Run({"show", WriteRecord(MakeSampleRun()), "--format", "json"}).out);
  EXPECT_EQ(json["status"], "complete");
  EXPECT_EQ(json["loss"]["first"]["bits"], "0x40000000");
  EXPECT_EQ(json["loss"]["first"]["value"], 2.0);
  EXPECT_EQ(json["accuracy"]["max"], 0.71);
  EXPECT_EQ(json["content_digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["environment"]["threads_per_stage"], "3");
}

TEST_F(ShowCommand, EqualContentHasEqualDigestsWhateverTheLayout) {
  SampleRun other = MakeSampleRun();
  other.run.stages = 7;
  other.run.policy = "sequential";
  for (SubnetRow& subnet : other.subnets) {
    for (AccessRow& access : subnet.accesses) access.stage = 6;
  }
  const auto digest = [this](const std::string& record) {
    return nlohmann::json::parse(Run({"show", record, "--format", "json"}).out)["content_digest"];
  };
  const auto one = digest(WriteRecord(MakeSampleRun(), "one.db"));
  EXPECT_EQ(one, digest(WriteRecord(other, "other.db")));
  other.subnets[3].loss_bits ^= 1;
  EXPECT_NE(one, digest(WriteRecord(other, "third.db")));
}

TEST_F(ShowCommand, SaysHowARunWasInterrupted) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kInterrupted;
  sample.subnets.resize(4);
  sample.evaluations.clear();
  const CommandResult result = Run({"show", WriteRecord(sample)});
  EXPECT_THAT(result.out, HasSubstr("interrupted after 4 of 12 subnets"));
  EXPECT_THAT(result.out, HasSubstr("accuracy  not evaluated"));
}

TEST_F(ShowCommand, ShowsARecordWithoutSubnets) {
  SampleRun sample = MakeSampleRun();
  sample.run.status = RunStatus::kInterrupted;
  sample.subnets.clear();
  sample.evaluations.clear();
  const CommandResult result = Run({"show", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("loss      none yet"));
}

TEST_F(ShowCommand, ShowsOneSubnet) {
  const SampleRun sample = MakeSampleRun();
  const CommandResult result = Run({"show", WriteRecord(sample), "--subnet", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("loss   2.00000072 (bits 0x40000003)"));
  EXPECT_THAT(result.out, HasSubstr("4 samples: 3 103 203 303"));
  EXPECT_THAT(result.out,
              HasSubstr("  block0." + std::to_string(sample.subnets[3].choices[0]) + " "));
  EXPECT_THAT(result.out, HasSubstr("  stem             0        2        2  02040101"));
}

TEST_F(ShowCommand, ShowsOneSubnetAsJson) {
  const SampleRun sample = MakeSampleRun();
  const auto json = nlohmann::json::parse(
      Run({"show", WriteRecord(sample), "--subnet", "3", "--format", "json"}).out);
  EXPECT_EQ(json["subnet"], 3);
  EXPECT_EQ(json["choices"].size(), 3u);
  EXPECT_EQ(json["accesses"].size(), sample.subnets[3].accesses.size());
  EXPECT_EQ(json["accesses"][0]["layer_name"], "stem");
  EXPECT_EQ(json["accesses"][0]["read_seq"], 2);
  EXPECT_TRUE(json["accesses"][0]["gradients"].is_null());
}

TEST_F(ShowCommand, ShowsALayersLineageByNameAndId) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult by_name = Run({"show", record, "--layer", "head"});
  ASSERT_EQ(by_name.exit_code, 0) << by_name.err;
  EXPECT_THAT(by_name.out, HasSubstr("used by  12 subnets"));
  EXPECT_THAT(by_name.out, HasSubstr("         3          2          2      1  02040b"));
  EXPECT_EQ(by_name.out, Run({"show", record, "--layer", "10"}).out);
}

TEST_F(ShowCommand, SaysThatALayerHasNoVersions) {
  const CommandResult result = Run({"show", WriteRecord(MakeSampleRun()), "--layer", "block0.2"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("never written"));
}

TEST_F(ShowCommand, RefusesWhatTheRecordDoesNotHold) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult subnet = Run({"show", record, "--subnet", "12"});
  EXPECT_EQ(subnet.exit_code, 2);
  EXPECT_THAT(subnet.err, HasSubstr("It holds 12 subnets, counted from 0."));
  const CommandResult layer = Run({"show", record, "--layer", "block0.l"});
  EXPECT_EQ(layer.exit_code, 2);
  EXPECT_THAT(layer.err, HasSubstr("did you mean \"block0."));
}

TEST_F(ShowCommand, WritesAPageAndATrace) {
  SampleRun sample = MakeSampleRun();
  sample.subnets[0].activities = {{0, 0, Phase::kForward, 10, 20}};
  const std::string record = WriteRecord(sample);
  const CommandResult result =
      Run({"show", record, "--html", Path("run.html"), "--trace", Path("run.json")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(ReadFile(Path("run.html")), HasSubstr("<strong>intact</strong>"));
  const auto trace = nlohmann::json::parse(ReadFile(Path("run.json")));
  EXPECT_EQ(trace["traceEvents"].back()["name"], "forward 0");
}

TEST_F(ShowCommand, WritesAPageOfADamagedRecord) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.pop_back();
  EXPECT_EQ(Run({"show", WriteRecord(sample), "--html", Path("run.html")}).exit_code, 0);
  EXPECT_THAT(ReadFile(Path("run.html")), HasSubstr("<strong>damaged</strong>"));
}

TEST_F(ShowCommand, WritesOverNoRecordAndIntoNoFolder) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::string before = ReadFile(record);
  for (const char* option : {"--html", "--trace"}) {
    EXPECT_EQ(Run({"show", record, option, record}).exit_code, 2);
    const CommandResult unwritable = Run({"show", record, option, Path("none/file")});
    EXPECT_EQ(unwritable.exit_code, 4);
    EXPECT_THAT(unwritable.err, HasSubstr("none/file cannot be written"));
    EXPECT_EQ(Run({"show", record, option, Path("file"), "--subnet", "1"}).exit_code, 2);
  }
  EXPECT_EQ(ReadFile(record), before);
}

}  // namespace
}  // namespace verbatim
