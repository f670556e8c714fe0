// What the commands do with records of step runs, which another trainer made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_fixture.h"
#include "tests/verify/step_sample.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

class StepRunCommands : public CommandTest {
 protected:
  std::string Steps(const SampleSteps& sample = {}, const std::string& name = "run.db") const {
    return WriteSteps(sample, Path(name));
  }
  /// A run whose step 5 is another.
  std::string Other() const {
    SampleSteps sample;
    sample.noise = [](std::int64_t step) { return step == 5 ? "a bit flipped" : ""; };
    return Steps(sample, "other.db");
  }
};

TEST_F(StepRunCommands, VerifyProvesARunIntact) {
  const CommandResult result = Run({"verify", Steps()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("20 steps, 80 accesses: intact and causal (of another trainer)"));
}

TEST_F(StepRunCommands, VerifyFindsAWriteFromOutside) {
  SampleSteps sample;
  sample.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 12) row.facts.outside = {2};
  };
  const CommandResult result = Run({"verify", Steps(sample), "--format", "json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["run"]["kind"], "steps");
  EXPECT_EQ(json["first_difference"]["class"], "schedule");
  EXPECT_EQ(json["first_difference"]["step"], 12);
  EXPECT_EQ(json["first_difference"]["subnet"], 12);
  EXPECT_EQ(json["first_difference"]["layer_name"], "fc2.weight");
}

TEST_F(StepRunCommands, DiffNamesStepAndLayerInEveryFormat) {
  const std::string a = Steps();
  const std::string b = Other();
  const CommandResult text = Run({"diff", a, b, "--also", Path("d.html"), "--also", Path("d.xml"),
                                  "--also", Path("d.md"), "--also", Path("d.json")});
  EXPECT_EQ(text.exit_code, 1) << text.err;
  EXPECT_THAT(text.out, HasSubstr("First difference: step 5, layer relu, forward, computation"));
  EXPECT_THAT(text.out, HasSubstr("verbatim show " + a + " --step 5"));
  EXPECT_THAT(ReadFile(Path("d.xml")), HasSubstr("type=\"computation\""));
  EXPECT_THAT(ReadFile(Path("d.md")), HasSubstr("Tainted steps: 6–19"));
  const std::string page = ReadFile(Path("d.html"));
  EXPECT_THAT(page, HasSubstr("Map of equality: steps by 5 positions"));
  EXPECT_THAT(page, HasSubstr("\"word\":\"step\""));
  EXPECT_THAT(page, testing::Not(HasSubstr("Tainted subnets")));
  const auto json = nlohmann::json::parse(ReadFile(Path("d.json")));
  EXPECT_EQ(json["first_difference"]["step"], 5);
  EXPECT_EQ(json["comparison"]["tainted"][0], nlohmann::json({6, 19}));
}

TEST_F(StepRunCommands, VerifyComparesWithAReference) {
  const CommandResult result = Run({"verify", Steps(), "--against", Other()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("5 of 20 steps equal to " + Path("other.db")));
}

TEST_F(StepRunCommands, LayersMeetByTheNamesOfAFile) {
  SampleSteps renamed;
  renamed.layers[0].name = "encoder.weight";
  const std::string a = Steps();
  const std::string b = Steps(renamed, "renamed.db");
  const std::string names = WriteFile("names.json", R"({"fc1.weight": "encoder.weight"})");
  EXPECT_EQ(Run({"diff", a, b}).exit_code, 1);
  EXPECT_EQ(Run({"diff", a, b, "--rename", names}).exit_code, 0);
  EXPECT_EQ(Run({"verify", a, "--against", b, "--rename", names}).exit_code, 0);
}

TEST_F(StepRunCommands, RefusesNamesThatDoNotFit) {
  const std::string a = Steps();
  const std::string b = Steps({}, "b.db");
  const auto refused = [&](const std::string& text, const std::string& message) {
    const CommandResult result = Run({"diff", a, b, "--rename", WriteFile("n.json", text)});
    EXPECT_EQ(result.exit_code, 3) << text;
    EXPECT_THAT(result.err, HasSubstr(message)) << text;
  };
  refused("{", "n.json:1:2: ");
  refused("[]", "n.json:1:1: expected an object");
  refused("{\n \"fc1.weight\": 3}", "n.json:2:16: fc1.weight: expected a string");
  refused(R"({"fc1.weight": "a", "fc1.weight": "b"})", "n.json:1:21: ");
  refused(R"({"fc1.weigth": "fc1.weight"})", "A has no layer 'fc1.weigth'");
  refused(R"({"fc1.weight": "nowhere"})", "B has no layer 'nowhere'");
  const CommandResult absent = Run({"diff", a, b, "--rename", Path("none.json")});
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_THAT(absent.err, HasSubstr("none.json: the file of --rename cannot be read"));
}

TEST_F(StepRunCommands, ReplicasAreRanksOfOneRun) {
  const auto rank = [&](std::int64_t number, const std::string& name) {
    SampleSteps sample;
    sample.run.spec.world_size = 2;
    sample.run.spec.rank = number;
    sample.after = [number](std::int64_t step, StepRow& row, SampleState&) {
      row.batch = DigestOf(fmt::format("rank {} step {}", number, step));
    };
    return Steps(sample, name);
  };
  const std::string a = rank(0, "run.rank0.db");
  const std::string b = rank(1, "run.rank1.db");
  EXPECT_EQ(Run({"diff", a, b, "--replicas"}).exit_code, 0);
  EXPECT_EQ(Run({"diff", a, b}).exit_code, 1);
  const CommandResult same = Run({"diff", a, Steps({}, "c.db"), "--replicas"});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_THAT(same.err, HasSubstr("A is of 2 ranks, B of 1 rank"));
}

TEST_F(StepRunCommands, ShowsRunStepAndLayer) {
  SampleSteps sample;
  sample.run.spec.every = 5;
  sample.run.spec.settings = {{"precision", "\"bf16\""}};
  const std::string record = Steps(sample);
  const CommandResult run = Run({"show", record});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("layout    rank 0 of 1, one of 5 steps recorded, seed 1"));
  EXPECT_THAT(run.out, HasSubstr("settings  precision \"bf16\""));
  EXPECT_THAT(run.out, HasSubstr("steps     4, 16 accesses"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("subnet")));
  const auto json = nlohmann::json::parse(Run({"show", record, "--format", "json"}).out);
  EXPECT_EQ(json["steps"]["every"], 5);

  const CommandResult step = Run({"show", record, "--step", "10"});
  EXPECT_EQ(step.exit_code, 0) << step.err;
  EXPECT_THAT(step.out, HasSubstr("Step 10 of "));
  EXPECT_THAT(step.out, HasSubstr("settings  lr 0.1, momentum 0.9"));
  EXPECT_EQ(Run({"show", record, "--subnet", "10"}).out, step.out);
  const auto row =
      nlohmann::json::parse(Run({"show", record, "--step", "10", "--format", "json"}).out);
  EXPECT_EQ(row["row"], 2);
  EXPECT_EQ(row["settings"]["lr"], 0.1);
  EXPECT_EQ(row["captured"][0]["layer_name"], "relu");
  const CommandResult none = Run({"show", record, "--step", "11"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("It holds 4 steps, from step 0 to step 15."));

  const CommandResult layer = Run({"show", record, "--layer", "fc2.weight"});
  EXPECT_EQ(layer.exit_code, 0) << layer.err;
  EXPECT_THAT(layer.out, HasSubstr("\n        15  "));
  const auto lineage =
      nlohmann::json::parse(Run({"show", record, "--layer", "2", "--format", "json"}).out);
  EXPECT_EQ(lineage["lineage"][3]["step"], 15);
}

TEST_F(StepRunCommands, ProvesAStep) {
  const std::string record = Steps();
  ASSERT_EQ(Run({"head", record, "-o", Path("run.head")}).exit_code, 0);
  const CommandResult made = Run({"show", record, "--step", "7", "--proof", Path("p.proof")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(Run({"proof", Path("p.proof"), "--head", Path("run.head")}).exit_code, 0);
  EXPECT_EQ(Run({"verify", record, "--head", Path("run.head")}).exit_code, 0);
  EXPECT_EQ(Run({"show", record, "--proof", Path("q.proof")}).exit_code, 2);
}

TEST_F(StepRunCommands, WhatNeedsARunOfThisProgramIsRefused) {
  const std::string record = Steps();
  const std::string other = Steps({}, "other.db");
  const std::string supernet = WriteRecord(MakeSampleRun(), "supernet.db");
  const std::vector<std::vector<std::string>> refused = {
      {"verify", record, "--reexecute", "all"},
      {"verify", record, "--part", Path("x")},
      {"verify", record, "--against", supernet},
      {"replay", record},
      {"resume", record},
      {"export", record, "-o", Path("x.safetensors")},
      {"diff", record, other, "--first"},
      {"diff", record, other, "--explain"},
      {"diff", record, supernet},
      {"diff", supernet, record},
      {"diff", supernet, WriteRecord(MakeSampleRun(), "twin.db"), "--replicas"},
      {"show", record, "--trace", Path("x.json")},
      {"show", supernet, "--step", "3"},
  };
  for (const auto& words : refused) {
    const CommandResult result = Run(words);
    std::string line;
    for (const std::string& word : words) line += word + " ";
    EXPECT_EQ(result.exit_code, 2) << line << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr("step")) << line;
  }
  EXPECT_THAT(Run({"replay", record}).err, HasSubstr("was recorded by another trainer"));
}

}  // namespace
}  // namespace verbatim
