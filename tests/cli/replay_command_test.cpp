// Proves what `replay` asks of the engine, what it prints, records and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "recorder/content_digest.h"
#include "store/reader.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using ReplayCommand = CommandTest;

TEST_F(ReplayCommand, ComparesOnALayoutOfItsOwn) {
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult result = Run({"replay", record, "--stages", "3", "--in-flight", "5",
                                    "--recompute", "1-2", "--device-memory", "2MiB"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("re-executing all 12 subnets"));
  EXPECT_THAT(result.out, EndsWith("equal to a replay on 3 stages\n"));
  const ReexecuteOptions& options = engine_.reexecute_options;
  EXPECT_EQ(options.stages, 3);
  EXPECT_EQ(options.in_flight, 5);
  EXPECT_EQ(options.recompute, "1-2");
  EXPECT_EQ(options.device_memory, 2 << 20);
  EXPECT_EQ(options.threads_per_stage, 3);
  EXPECT_EQ(options.subnets.size(), 12u);
  EXPECT_TRUE(options.evaluate);
}

TEST_F(ReplayCommand, StopsAtTheFirstDifferenceOrKeepsGoing) {
  engine_.computed.subnets[3].loss_bits ^= 1;
  const std::string record = WriteRecord(MakeSampleRun());
  const CommandResult first = Run({"replay", record, "--format", "json"});
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(first.out)["counts"]["subnets_reexecuted"], 3);
  const CommandResult all = Run({"replay", record, "--format", "json", "--keep-going"});
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(all.out)["counts"]["subnets_reexecuted"], 11);
  EXPECT_EQ(nlohmann::json::parse(all.out)["first_difference"]["subnet"], 3);
}

TEST_F(ReplayCommand, SelectsAPrefixASubnetOrAVersion) {
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_EQ(Run({"replay", record, "--until", "2"}).exit_code, 0);
  EXPECT_THAT(engine_.reexecute_options.subnets, ElementsAre(0, 1, 2));
  EXPECT_FALSE(engine_.reexecute_options.evaluate);
  const CommandResult cone = Run({"replay", record, "--subnet", "1"});
  EXPECT_EQ(cone.exit_code, 0);
  EXPECT_THAT(cone.err, HasSubstr("2 of 12 subnets (the causal cone of subnet 1)"));
  EXPECT_THAT(engine_.reexecute_options.subnets, ElementsAre(0, 1));
  EXPECT_EQ(Run({"replay", record, "--layer", "head", "--at", "1"}).exit_code, 0);
  EXPECT_THAT(engine_.reexecute_options.subnets, ElementsAre(0, 1));
}

TEST_F(ReplayCommand, RecordsTheReplay) {
  const std::string record = WriteRecord(MakeSampleRun());
  const std::string copy = Path("replayed.db");
  EXPECT_EQ(Run({"replay", record, "--stages", "2", "-o", copy}).exit_code, 0);
  const auto reader = RecordReader::Open(copy);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ((*reader)->Run()->stages, 2);
  EXPECT_EQ((*reader)->Run()->policy, "causal");
  EXPECT_THAT((*reader)->Run()->command_line, HasSubstr("replay"));
  EXPECT_EQ(ContentDigest(**reader).value(), ContentDigest(**RecordReader::Open(record)).value());
}

TEST_F(ReplayCommand, ExplainsTheFirstDifference) {
  engine_.computed.subnets[3].loss_bits ^= 1;
  engine_.explanation.left_reproduced = true;
  engine_.explanation.first = TensorDifference{Phase::kForward,
                                               "block1.0",
                                               "linear",
                                               "output of micro-batch 1",
                                               {4, 8},
                                               {2, 5},
                                               0.5f,
                                               0.25f,
                                               32,
                                               3,
                                               0.25};
  SampleRun sample = MakeSampleRun();
  sample.environment.push_back({"info.injected", "stale-read@3 block1.0 forward"});
  const CommandResult result =
      Run({"replay", WriteRecord(sample), "--explain", "--device-memory", "2MiB"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("block1.0 (linear), forward: output of micro-batch 1 [4 × 8]"));
  EXPECT_THAT(result.out, HasSubstr("[2, 5]: 0.5 (bits 0x3f000000) in the recorded run, 0.25 "));
  EXPECT_THAT(result.out, HasSubstr("3 of 32 elements differ, by at most 0.25"));
  ASSERT_EQ(engine_.explained.size(), 2u);
  const ReexecuteOptions& recorded = engine_.explained[0].options;
  const ReexecuteOptions& reference = engine_.explained[1].options;
  EXPECT_EQ(recorded.stages, 2);
  EXPECT_EQ(recorded.policy, "causal");
  EXPECT_EQ(recorded.fault, (Fault{FaultKind::kStaleRead, 3}));
  EXPECT_EQ(recorded.subnets.back(), 3);
  EXPECT_EQ(reference.stages, 1);
  EXPECT_EQ(reference.policy, "sequential");
  EXPECT_FALSE(reference.fault.has_value());
  for (const ReexecuteOptions* side : {&recorded, &reference}) {
    EXPECT_EQ(side->device_memory, 2 << 20);
    EXPECT_TRUE(side->wishes_device_memory) << "these layouts were not chosen with it";
  }
}

TEST_F(ReplayCommand, ExplainsNothingWhereAllIsEqual) {
  EXPECT_EQ(Run({"replay", WriteRecord(MakeSampleRun()), "--explain"}).exit_code, 0);
  EXPECT_TRUE(engine_.explained.empty());
}

TEST_F(ReplayCommand, RefusesWhatMakesNoSense) {
  const std::string record = WriteRecord(MakeSampleRun());
  std::filesystem::create_symlink(record, Path("link.txt"));
  const std::vector<std::vector<std::string>> usages{
      {"--also", Path("link.txt")},
      {"-o", Path("out.db"), "--report", Path("out.db")},
      {"--subnet", "12"},
      {"--until", "12"},
      {"--layer", "head"},
      {"--at", "1"},
      {"-o", record},
      {"--subnet", "1", "-o", Path("cone.db")},
      {"--report", record},
      {"--stages", "0"},
      {"--subnet", "1", "--until", "1"},
      {"--record", "off"},
      {"--force"},
      {"--layer", "none", "--at", "1"}};
  for (const auto& options : usages) {
    std::vector<std::string> words{"replay", record};
    words.insert(words.end(), options.begin(), options.end());
    const CommandResult result = Run(words);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(options) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(Run({"verify", record}).exit_code, 0);
}

TEST_F(ReplayCommand, DoesNotExecuteADamagedRecord) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.pop_back();
  EXPECT_EQ(Run({"replay", WriteRecord(sample)}).exit_code, 3);
  EXPECT_TRUE(engine_.reexecute_options.subnets.empty());
}

TEST_F(ReplayCommand, WithoutAnEngineSaysHowToGetOne) {
  const CommandResult result = RunWith(nullptr, {"replay", WriteRecord(MakeSampleRun())});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("verbatim-engine"));
}

}  // namespace
}  // namespace verbatim
