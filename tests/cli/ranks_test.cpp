// Proves what the commands make of a launcher's variables: rank 0 does what they say, the others
// work for it, and nobody is left waiting for a rank that will not come.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Ranks : public CommandTest {
 protected:
  ~Ranks() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }

  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  /// As srun would start one of `ranks` processes on one host.
  void Launch(int rank, int ranks) {
    Set("SLURM_PROCID", std::to_string(rank));
    Set("SLURM_STEP_NUM_TASKS", std::to_string(ranks));
    Set("SLURM_STEP_NUM_NODES", "1");
    Set("MASTER_ADDR", "127.0.0.1");
    Set("MASTER_PORT", "29511");
  }

  void ExpectUsage(const std::vector<std::string>& arguments, const std::string& says) {
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_EQ(engine_.trained, 0);
    EXPECT_FALSE(engine_.work_request.has_value());
  }

  const std::string spec_ = WriteFile("spec.json", SampleSpecText());
  std::vector<std::string> set_;
};

TEST_F(Ranks, OneProcessHasNoPlace) {
  ASSERT_EQ(Run({"train", spec_, "-o", Path("run.db")}).exit_code, 0);
  EXPECT_FALSE(engine_.train_request.place.has_value());
  EXPECT_EQ(engine_.train_request.layout.stages, 1);
  EXPECT_TRUE(engine_.dismissed.empty());
}

TEST_F(Ranks, RankZeroTrains) {
  Launch(0, 3);
  Set("VERBATIM_TOKEN", "0123456789abcdef");
  const CommandResult result = Run({"train", spec_, "-o", Path("run.db"), "--interface", "lo",
                                    "--encrypt", "--join-timeout", "7", "--peer-timeout", "9"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto& place = engine_.train_request.place;
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->rank.rank, 0);
  EXPECT_EQ(place->rank.ranks, 3);
  EXPECT_EQ(place->network.interface, "lo");
  EXPECT_EQ(place->network.token, "0123456789abcdef");
  EXPECT_TRUE(place->network.encrypt);
  EXPECT_EQ(place->network.join_timeout_ms, 7'000);
  EXPECT_EQ(place->network.peer_timeout_ms, 9'000);
  EXPECT_EQ(engine_.train_request.layout.stages, 3);
}

/// Its own output is nobody's business: rank 0 alone writes.
TEST_F(Ranks, OthersWork) {
  WriteFile("run.db", "rank 0 has begun");
  Launch(1, 3);
  const CommandResult result = Run({"train", spec_, "-o", Path("run.db"), "--data", folder_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(engine_.trained, 0);
  ASSERT_TRUE(engine_.work_request.has_value());
  EXPECT_EQ(engine_.work_request->place.rank.rank, 1);
  EXPECT_EQ(engine_.work_request->spec_folder, std::filesystem::path(folder_));
  EXPECT_EQ(engine_.work_request->data_folder, std::filesystem::path(folder_));
}

TEST_F(Ranks, AllAreAskedForTheSame) {
  const std::vector<std::string> arguments{"train", spec_, "--record", "off", "--subnets", "9"};
  Launch(0, 2);
  ASSERT_EQ(Run(arguments).exit_code, 0);
  Launch(1, 2);
  ASSERT_EQ(Run(arguments).exit_code, 0);
  EXPECT_EQ(engine_.train_request.place->task_json, engine_.work_request->place.task_json);
  const auto task = nlohmann::json::parse(engine_.work_request->place.task_json);
  EXPECT_EQ(task["command"], "train");
  EXPECT_EQ(task["stages"], 2);
  EXPECT_EQ(task["spec"]["training"]["subnets"], 9);
}

TEST_F(Ranks, StagesAreKept) {
  Launch(0, 2);
  ASSERT_EQ(Run({"train", spec_, "-o", Path("run.db"), "--stages", "4"}).exit_code, 0);
  EXPECT_EQ(engine_.train_request.layout.stages, 4);
  engine_.trained = 0;
  ExpectUsage({"resume", WriteRecord(MakeSampleRun()), "--stages", "1"},
              "--stages 1: 2 ranks need a stage each");
}

TEST_F(Ranks, RefusesWhatOneProcessDoesAlone) {
  const std::string record = WriteRecord(MakeSampleRun());
  for (const int rank : {0, 1}) {
    Launch(rank, 2);
    for (const auto& [option, value] :
         std::vector<std::pair<std::string, std::string>>{{"--inject", "bit-flip"},
                                                          {"--policy", "gpipe"},
                                                          {"--device", "cuda:0"}}) {
      ExpectUsage({"train", spec_, "-o", Path("new.db"), option, value},
                  "in one process, not in several");
    }
    ExpectUsage({"replay", record, "--explain"}, "--explain");
    ExpectUsage({"verify", record, "--reexecute", "all", "--explain"}, "--explain");
    ExpectUsage({"train", spec_, "-o", Path("new.db"), "--stages", "1"},
                "--stages 1: 2 ranks need a stage each");
  }
}

TEST_F(Ranks, ErrorsOfOneAreToldToAll) {
  const std::string record = WriteFile("run.db", "");
  Launch(0, 2);
  EXPECT_EQ(Run({"train", spec_, "-o", record}).exit_code, 2);
  ASSERT_EQ(engine_.dismissed.size(), 1u);
  ASSERT_TRUE(engine_.dismissed[0].has_value());
  EXPECT_THAT(engine_.dismissed[0]->message, HasSubstr("exists already"));
  Launch(1, 2);
  EXPECT_EQ(Run({"train", Path("none.json"), "-o", record}).exit_code, 3);
  ASSERT_EQ(engine_.dismissed.size(), 2u);
  EXPECT_THAT(engine_.dismissed[1]->message, HasSubstr("none.json"));
}

TEST_F(Ranks, WithNothingToDoAllAreDismissed) {
  Launch(0, 2);
  const CommandResult result = Run({"resume", WriteRecord(MakeSampleRun())});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("is complete"));
  ASSERT_EQ(engine_.dismissed.size(), 1u);
  EXPECT_FALSE(engine_.dismissed[0].has_value());
}

TEST_F(Ranks, RecordsAreReexecutedTogether) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::vector<std::vector<std::string>> commands{{"replay", record},
                                                       {"verify", record, "--reexecute", "all"}};
  for (const auto& command : commands) {
    Launch(0, 2);
    const CommandResult first = Run(command);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    ASSERT_TRUE(engine_.reexecute_place.has_value());
    EXPECT_EQ(engine_.reexecute_options.stages, 2);
    EXPECT_EQ(engine_.reexecute_options.in_flight, 4);
    Launch(1, 2);
    engine_.work_request.reset();
    const CommandResult other = Run(command);
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out, "");
    ASSERT_TRUE(engine_.work_request.has_value());
    EXPECT_EQ(engine_.work_request->place.task_json, engine_.reexecute_place->task_json);
  }
}

TEST_F(Ranks, VerifyAloneIsRankZeros) {
  const std::string record = WriteRecord(MakeSampleRun());
  Launch(1, 2);
  const CommandResult other = Run({"verify", record});
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_EQ(other.out, "");
  Launch(0, 2);
  EXPECT_THAT(Run({"verify", record}).out, HasSubstr("intact and causal"));
  EXPECT_FALSE(engine_.work_request.has_value());
  EXPECT_TRUE(engine_.dismissed.empty());
}

TEST_F(Ranks, TokensFromFiles) {
  const std::string file = WriteFile("run.token", "0123456789abcdef\n");
  const std::vector<std::string> arguments{"train", spec_, "--record", "off", "--token-file", file};
  Launch(0, 2);
  chmod(file.c_str(), 0644);
  ExpectUsage(arguments, "others than its owner may read");
  chmod(file.c_str(), 0600);
  ASSERT_EQ(Run(arguments).exit_code, 0);
  EXPECT_EQ(engine_.train_request.place->network.token, "0123456789abcdef");
  engine_.trained = 0;
  Set("VERBATIM_TOKEN", "fedcba9876543210");
  ExpectUsage(arguments, "both give a token");
  EXPECT_EQ(Run({"train", spec_, "--record", "off", "--token-file", ""}).exit_code, 2);
}

TEST_F(Ranks, RefusesHalfOfALauncher) {
  Set("WORLD_SIZE", "4");
  ExpectUsage({"train", spec_, "-o", Path("run.db")}, "WORLD_SIZE is set, but RANK is not");
}

}  // namespace
}  // namespace verbatim
