// Proves that `verbatim train` hands every option to the engine, and refuses early what cannot
// work.
#include <gmock/gmock.h>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

class TrainCommand : public CommandTest {
 protected:
  const std::string spec_ = WriteFile("spec.json", SampleSpecText());
};

TEST_F(TrainCommand, PassesEveryOption) {
  const CommandResult result = Run({"train",
                                    spec_,
                                    "-o",
                                    Path("my run.db"),
                                    "--stages",
                                    "3",
                                    "--in-flight",
                                    "5",
                                    "--recompute",
                                    "1-2",
                                    "--threads-per-stage",
                                    "2",
                                    "--device",
                                    "cuda:1",
                                    "--policy",
                                    "asynchronous",
                                    "--record",
                                    "full",
                                    "--subnets",
                                    "9",
                                    "--data",
                                    folder_,
                                    "--force",
                                    "--no-stop-on-nan",
                                    "--inject",
                                    "bit-flip@4",
                                    "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const TrainRequest& request = engine_.train_request;
  EXPECT_EQ(request.spec, spec_);
  EXPECT_EQ(request.output, Path("my run.db"));
  EXPECT_EQ(request.layout.stages, 3);
  EXPECT_EQ(request.layout.in_flight, 5);
  EXPECT_EQ(request.layout.recompute, "1-2");
  EXPECT_EQ(request.threads_per_stage, 2);
  EXPECT_EQ(request.device, "cuda:1");
  EXPECT_EQ(request.policy, "asynchronous");
  EXPECT_EQ(request.record_level, "full");
  EXPECT_EQ(request.subnets, 9);
  EXPECT_EQ(request.data_folder, std::filesystem::path(folder_));
  EXPECT_TRUE(request.force);
  EXPECT_FALSE(request.stop_on_nan);
  EXPECT_EQ(request.inject, "bit-flip@4");
  EXPECT_TRUE(request.quiet);
  EXPECT_THAT(request.command_line,
              HasSubstr("verbatim train " + spec_ + " -o '" + Path("my run.db") + "' --stages 3"));
}

TEST_F(TrainCommand, HasDefaults) {
  ASSERT_EQ(Run({"train", spec_, "-o", Path("run.db")}).exit_code, 0);
  const TrainRequest& request = engine_.train_request;
  EXPECT_EQ(request.layout.stages, 1);
  EXPECT_EQ(request.policy, "causal");
  EXPECT_EQ(request.record_level, "");
  EXPECT_FALSE(request.subnets.has_value());
  EXPECT_FALSE(request.data_folder.has_value());
  EXPECT_TRUE(request.stop_on_nan);
  EXPECT_FALSE(request.inject.has_value());
  EXPECT_FALSE(request.force);
}

TEST_F(TrainCommand, ReturnsTheEnginesError) {
  engine_.train_status = Failed("the disk is full", "Make room.");
  const CommandResult result = Run({"train", spec_, "-o", Path("run.db")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err, "verbatim: error: the disk is full\n  Make room.\n");
}

struct Refusal {
  const char* name;
  std::vector<std::string> arguments;  ///< "@x" is file x in the test's folder
  int exit_code;
  const char* message;
};

class TrainRefusal : public CommandTest, public testing::WithParamInterface<Refusal> {};

TEST_P(TrainRefusal, ComesBeforeTheEngine) {
  WriteFile("spec.json", SampleSpecText());
  WriteFile("bad.json", "{}");
  WriteFile("there.db", "x");
  std::vector<std::string> arguments{"train"};
  for (const std::string& argument : GetParam().arguments) {
    arguments.push_back(argument.starts_with('@') ? Path(argument.substr(1)) : argument);
  }
  const CommandResult result = Run(arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code);
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_EQ(engine_.trained, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TrainRefusal,
    testing::Values(
        Refusal{"NoOutput", {"@spec.json"}, 2, "no record was named"},
        Refusal{"OutputExists", {"@spec.json", "-o", "@there.db"}, 2, "exists already"},
        Refusal{"OutputIsFolder", {"@spec.json", "-o", "@."}, 2, "is a folder"},
        Refusal{"NoSuchFolder", {"@spec.json", "-o", "@none/run.db"}, 2, "there is no folder"},
        Refusal{"OutputAndOff",
                {"@spec.json", "-o", "@run.db", "--record", "off"},
                2,
                "--record off makes none"},
        Refusal{"NoSuchFault",
                {"@spec.json", "-o", "@run.db", "--inject", "bitflip"},
                2,
                "did you mean \"bit-flip\"?"},
        Refusal{"EmptyFault",
                {"@spec.json", "-o", "@run.db", "--inject", ""},
                2,
                "there is no fault ''"},
        Refusal{"FaultAndOff",
                {"@spec.json", "--record", "off", "--inject", "bit-flip"},
                2,
                "to be found in a record"},
        Refusal{"LeadingZero",
                {"@spec.json", "-o", "@run.db", "--stages", "010"},
                2,
                "'010' is no whole number"},
        Refusal{"NoData", {"@spec.json", "-o", "@run.db", "--data", "@none"}, 3, "is no folder"},
        Refusal{"BadSpec", {"@bad.json", "-o", "@run.db"}, 3, "bad.json"},
        Refusal{"NoSpec", {"@none.json", "-o", "@run.db"}, 3, "none.json"}),
    [](const auto& test) { return test.param.name; });

TEST_F(TrainCommand, WithoutAnEngineSaysHowToGetOne) {
  const CommandResult result = RunWith(nullptr, {"train", spec_, "-o", Path("run.db")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("verbatim-engine was not found"));
  EXPECT_THAT(result.err, HasSubstr("VERBATIM_TRAINER=ON"));
}

TEST_F(TrainCommand, WithoutAnEngineStillRefusesABadSpecFirst) {
  EXPECT_EQ(RunWith(nullptr, {"train", Path("none.json"), "-o", Path("run.db")}).exit_code, 3);
}

}  // namespace
}  // namespace verbatim
