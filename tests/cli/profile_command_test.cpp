// Proves that `verbatim profile` hands every option to the engine, writes what the engine measured
// as a cost file that reads back, and refuses early what cannot work.
#include <gmock/gmock.h>

#include "supernet/costs.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

class ProfileCommand : public CommandTest {
 protected:
  const std::string spec_ = WriteFile("spec.json", SampleSpecText());
};

TEST_F(ProfileCommand, PassesEveryOption) {
  const CommandResult result =
      Run({"profile", spec_, "-o", Path("costs.json"), "--repeat", "7", "--threads-per-stage", "2",
           "--device", "cuda:1", "--data", folder_, "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ProfileRequest& request = *engine_.profile_request;
  EXPECT_EQ(request.spec, spec_);
  EXPECT_EQ(request.output, Path("costs.json"));
  EXPECT_EQ(request.repeat, 7);
  EXPECT_EQ(request.threads_per_stage, 2);
  EXPECT_EQ(request.device, "cuda:1");
  EXPECT_EQ(request.data_folder, std::filesystem::path(folder_));
  EXPECT_TRUE(request.quiet);
  EXPECT_EQ(result.out, "");
}

TEST_F(ProfileCommand, WritesACostFileThatReadsBack) {
  const CommandResult result = Run({"profile", spec_, "-o", Path("costs.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto measured = engine_.Profile({});
  ASSERT_TRUE(measured.has_value());
  const auto read = ReadCosts(Path("costs.json"), measured->space, measured->spec);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, measured->costs);
  EXPECT_THAT(result.out, HasSubstr("next: verbatim train " + spec_ +
                                    " -o run.db --stages 2 --costs " + Path("costs.json")));
}

TEST_F(ProfileCommand, ShowsEveryLayer) {
  const CommandResult result = Run({"profile", spec_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("11 layers of sample on cpu, micro-batches of 2 rows"));
  EXPECT_THAT(result.out, HasSubstr("\n  stem         linear relu      1.000 "));
  EXPECT_THAT(result.out, HasSubstr("\n  head         classifier      11.000 "));
}

TEST_F(ProfileCommand, LeavesAFileAloneWhereMeasuringFails) {
  const std::string costs = WriteFile("costs.json", "of before");
  engine_.profile_status = Failed("stopped on request");
  const CommandResult result = Run({"profile", spec_, "-o", costs});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("stopped on request"));
  EXPECT_EQ(ReadFile(costs), "of before");
}

struct Refusal {
  const char* name;
  std::vector<std::string> arguments;  ///< "@x" is file x in the test's folder
  int exit_code;
  const char* message;
};

class ProfileRefusal : public CommandTest, public testing::WithParamInterface<Refusal> {};

TEST_P(ProfileRefusal, ComesBeforeTheEngine) {
  WriteFile("spec.json", SampleSpecText());
  WriteFile("bad.json", "{}");
  std::vector<std::string> arguments{"profile"};
  for (const std::string& argument : GetParam().arguments) {
    arguments.push_back(argument[0] == '@' ? Path(argument.substr(1)) : argument);
  }
  const CommandResult result = Run(arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code);
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_FALSE(engine_.profile_request.has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ProfileRefusal,
    testing::Values(Refusal{"NoRepeat", {"@spec.json", "--repeat", "0"}, 2, "--repeat"},
                    Refusal{"NoDevice", {"@spec.json", "--device", "gpu"}, 2, "is no device"},
                    Refusal{"NoSuchFolder", {"@spec.json", "-o", "@none/c.json"}, 4, "none"},
                    Refusal{"OverTheSpec", {"@spec.json", "-o", "@spec.json"}, 2, "is read"},
                    Refusal{"NoData", {"@spec.json", "--data", "@none"}, 3, "is no folder"},
                    Refusal{"BadSpec", {"@bad.json"}, 3, "bad.json"},
                    Refusal{"NoSpec", {"@none.json"}, 3, "none.json"}),
    [](const auto& test) { return test.param.name; });

TEST_F(ProfileCommand, WithoutAnEngineSaysHowToGetOne) {
  const CommandResult result = RunWith(nullptr, {"profile", spec_});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("verbatim-engine was not found"));
}

}  // namespace
}  // namespace verbatim
