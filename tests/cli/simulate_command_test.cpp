// Proves what `verbatim simulate` prints, writes and refuses.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "supernet/costs.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// Eight blocks of four convolutions on CIFAR's shape: no data is needed.
constexpr const char* kSpec = R"({"name": "s", "seed": 1,
  "data": {"format": "cifar10", "folder": "none"},
  "supernet": {"stem": {"op": "conv", "channels": 4, "trainable": false},
    "blocks": [{"repeat": 8, "candidates": [{"op": "conv"}, {"op": "conv", "kernel": 5},
      {"op": "mbconv"}, {"op": "separable_conv"}]}],
    "head": {"op": "classifier", "trainable": false}},
  "sampler": {"kind": "fair"},
  "training": {"subnets": 40, "batch": 10, "microbatches": 4, "optimizer": {"kind": "sgd"},
    "lr": {"kind": "constant", "base": 0.1}}})";

class SimulateCommand : public CommandTest {
 protected:
  json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", spec_});
    arguments.insert(arguments.end(), {"--format", "json"});
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  const std::string spec_ = WriteFile("spec.json", kSpec);
};

TEST_F(SimulateCommand, PrintsARunAndItsStages) {
  const CommandResult result = Run({"simulate", spec_, "--stages", "2", "--costs", "equal"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("Simulation of " + spec_ +
                                    ": 8 blocks, 34 layers, sampler fair, 40 subnets\n"
                                    "equal costs, a block's forward takes 1 ms\n"));
  EXPECT_THAT(result.out, HasSubstr("  causal       2   balanced              4         30"));
  EXPECT_THAT(result.out, HasSubstr("\n  stage "));
  EXPECT_THAT(result.out, HasSubstr("critical path of the causal graph"));
}

TEST_F(SimulateCommand, ReportsInJson) {
  const json study = RunJson({"--stages", "4", "--costs", "equal"});
  EXPECT_EQ(study["format"], "verbatim-simulation");
  EXPECT_EQ(study["version"], 1);
  EXPECT_EQ(study["unit"], "block");
  EXPECT_EQ(study["seconds_per_unit"], 1e-3);
  ASSERT_EQ(study["runs"].size(), 1U);
  const json& run = study["runs"][0];
  EXPECT_EQ(run["policy"], "causal");
  EXPECT_EQ(run["is_causal"], true);
  EXPECT_EQ(run["microbatches"], 4);
  EXPECT_EQ(run["violations"], 0);
  EXPECT_EQ(run["accesses"], 40 * 8);
  // Batches of 10 in micro-batches of 3, 3, 3 and 1.
  EXPECT_NEAR(run["work"].get<double>(), 40 * 8 * 3.0, 1e-3);
  EXPECT_GT(run["speedup"].get<double>(), 3.0);
  EXPECT_LE(run["bound"].get<double>(), run["makespan"].get<double>() * (1 + 1e-6));
  EXPECT_EQ(run["by_stage"].size(), 4U);
}

TEST_F(SimulateCommand, SweepsEveryCombination) {
  const json study = RunJson({"--sweep", "policy=gpipe,causal", "--sweep", "stages=1,2,4"});
  std::vector<std::string> runs;
  for (const json& run : study["runs"]) {
    runs.push_back(run["policy"].get<std::string>() + run["stages"].dump());
  }
  EXPECT_THAT(runs,
              testing::ElementsAre("gpipe1", "gpipe2", "gpipe4", "causal1", "causal2", "causal4"));
  EXPECT_GT(study["runs"][5]["speedup"], study["runs"][2]["speedup"]);
}

TEST_F(SimulateCommand, OptionsChangeWhatTheySay) {
  const json plain = RunJson({})["runs"][0];
  const json fewer = RunJson({"--subnets", "7", "--microbatches", "2"})["runs"][0];
  EXPECT_EQ(fewer["accesses"], 7 * 8);
  EXPECT_EQ(fewer["microbatches"], 2);
  const json slow = RunJson({"--latency", "100"})["runs"][0];
  EXPECT_GT(slow["makespan"], plain["makespan"]);
  const json narrow = RunJson({"--bandwidth", "0.1"})["runs"][0];
  EXPECT_GT(narrow["makespan"], plain["makespan"]);
  // Times are whole ticks, of which there are about 2^28 in a subnet with its transfers.
  EXPECT_NEAR(narrow["work"].get<double>() / plain["work"].get<double>(), 1.0, 1e-5);
  EXPECT_EQ(RunJson({"--unit-time", "0.5"})["seconds_per_unit"], 5e-7);
  const json stashing = RunJson({"--policy", "pipedream"})["runs"][0];
  EXPECT_EQ(stashing["is_causal"], false);
}

TEST_F(SimulateCommand, SaysWhatRecomputeSavesAndCosts) {
  const json study =
      RunJson({"--costs", "equal", "--stages", "2", "--sweep", "recompute=none;1-4,5-8;all"});
  ASSERT_EQ(study["runs"].size(), 3U);
  const json& plain = study["runs"][0];
  EXPECT_EQ(plain["recompute"], "none");
  EXPECT_EQ(plain["recomputed_work"], 0.0);
  EXPECT_EQ(study["runs"][1]["recompute"], "1-4,5-8");
  for (const json& run : {study["runs"][1], study["runs"][2]}) {
    EXPECT_NEAR(run["work"].get<double>(), plain["work"].get<double>(), 1e-3);  // in ticks
    EXPECT_NEAR(run["recomputed_work"].get<double>(), 40 * 8 * 1.0, 1e-3);
    EXPECT_LT(run["speedup"], plain["speedup"]);
    EXPECT_EQ(run["violations"], 0);
    for (const json& stage : run["by_stage"]) {
      EXPECT_LT(stage["activation_bytes"], stage["whole_activation_bytes"]);
      EXPECT_GT(stage["recompute"], 0.0);
    }
  }
  const CommandResult one =
      Run({"simulate", spec_, "--costs", "equal", "--stages", "2", "--recompute", "all"});
  EXPECT_THAT(one.out, HasSubstr("  recompute  micro-batches"));
  EXPECT_THAT(one.out, HasSubstr("\ncomputed again: 320 ms, 33.3 % of the work; activations of a "
                                 "stage at most "));
  const CommandResult page = Run({"simulate", spec_, "--recompute", "1-4,5-8", "--format", "html"});
  EXPECT_THAT(page.out, HasSubstr("1-4,5-8"));
  EXPECT_THAT(Run({"simulate", spec_}).out, Not(HasSubstr("recompute")));
}

TEST_F(SimulateCommand, WritesAPageWithoutNetwork) {
  const std::string page = Path("page.html");
  const CommandResult result =
      Run({"simulate", spec_, "--sweep", "stages=1,2,4", "--format", "html", "-o", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const std::string html = ReadFile(page);
  EXPECT_THAT(html, HasSubstr("data-chart=\"sweep\""));
  EXPECT_THAT(html, HasSubstr("data-chart=\"timeline-2\""));
  EXPECT_THAT(html, Not(HasSubstr("<link rel=\"stylesheet\"")));
  EXPECT_THAT(html, Not(HasSubstr("<script src")));
}

TEST_F(SimulateCommand, APageSaysWhatItLeavesOutAndWhatBreaksCausality) {
  const CommandResult result = Run({"simulate", spec_, "--sweep", "stages=2,4,8", "--sweep",
                                    "policy=causal,gpipe,pipedream", "--format", "html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("The first 8 of 9 runs are drawn."));
  EXPECT_THAT(result.out, HasSubstr("with stages 8, policy pipedream, which breaks causality"));
}

TEST_F(SimulateCommand, APageWithoutTimelinesHasNoLinkToThem) {
  const CommandResult result = Run({"simulate", spec_, "--timeline", "0", "--format", "html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("#timeline\"")));
}

TEST_F(SimulateCommand, WritesATraceOfItsTimeline) {
  const std::string trace = Path("trace.json");
  const CommandResult result = Run({"simulate", spec_, "--stages", "2", "--timeline", "5-9",
                                    "--costs", "equal", "--trace", trace});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json read = json::parse(ReadFile(trace), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(read["otherData"]["policy"], "causal");
  int tasks = 0;
  for (const json& event : read["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++tasks;
    EXPECT_GE(event["args"]["subnet"], 5);
    EXPECT_LE(event["args"]["subnet"], 9);
    EXPECT_FALSE(event["args"].contains("loss"));
  }
  EXPECT_EQ(tasks, 5 * 2 * (4 + 4 + 1));
}

TEST_F(SimulateCommand, TakesCostsFromAFile) {
  const Spec spec = ParseSpec(kSpec, "spec.json").value();
  const SearchSpace space = SearchSpace::Build(spec, ActivationShape{3, 32, 32}, 10).value();
  CostTable costs{.source = CostSource::kMeasured, .layers = {}};
  costs.layers.assign(space.layers().size(), {.forward = 0.5, .backward = 1.0, .update = 0.25});
  const json study = RunJson({"--costs", WriteFile("c.json", CostsToJson(costs, space, spec))});
  EXPECT_EQ(study["unit"], "second");
  EXPECT_EQ(study["seconds_per_unit"], 1.0);
  // Ten positions; micro-batches of 3, 3, 3 and 1 rows.
  EXPECT_NEAR(study["runs"][0]["work"].get<double>(), 40 * 10 * (1.5 * 10 / 3 + 0.25), 1e-2);
}

TEST_F(SimulateCommand, RefusesTheCostsOfAnotherSpace) {
  const std::string text = R"({"format": "verbatim-costs", "version": 1, "unit": "second",
    "microbatch_rows": 3, "layers": []})";
  const CommandResult result = Run({"simulate", spec_, "--costs", WriteFile("costs.json", text)});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("costs.json: holds 0 layers, but \"s\" has 34"));
}

TEST_F(SimulateCommand, BoundsDeviceMemory) {
  const json unbounded = RunJson({"--stages", "2"})["runs"][0];
  EXPECT_EQ(unbounded["device_memory"], nullptr);
  const auto least = unbounded["device_memory_least"].get<std::int64_t>();
  EXPECT_GT(least, unbounded["part_bytes"].get<double>());
  const std::string bytes = std::to_string(2 * least);
  const json study = RunJson({"--stages", "2", "--device-memory", bytes, "--host-bandwidth", "0.1",
                              "--sweep", "cache=lookahead,on-demand,lru"});
  ASSERT_EQ(study["runs"].size(), 3U);
  for (const json& run : study["runs"]) {
    const json& memory = run["device_memory"];
    EXPECT_EQ(memory["bytes"], 2 * least);
    EXPECT_GT(memory["loads"], 0);
    EXPECT_GT(memory["loaded_bytes"], 0);
    EXPECT_GT(memory["written_bytes"], 0);
    EXPECT_EQ(memory["by_stage"].size(), 2U);
    EXPECT_GE(memory["stall"], memory["stall_for_room"]);
    EXPECT_GE(run["makespan"], unbounded["makespan"]);
    EXPECT_EQ(run["violations"], 0);
    for (const json& stage : run["by_stage"]) EXPECT_LE(stage["weight_bytes"], 2 * least);
  }
  const json& ahead = study["runs"][0]["device_memory"];
  const json& lru = study["runs"][2]["device_memory"];
  EXPECT_EQ(lru["cache"], "lru");
  EXPECT_GT(ahead["hit_rate"], lru["hit_rate"]);
}

TEST_F(SimulateCommand, SaysTheLeastDeviceMemory) {
  const json unbounded = RunJson({"--stages", "2"})["runs"][0];
  const std::string least = unbounded["device_memory_least"].dump();
  const CommandResult refused =
      Run({"simulate", spec_, "--stages", "2", "--device-memory", "1KiB"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--device-memory 1024: too little"));
  EXPECT_THAT(refused.err, HasSubstr("use at least " + least));
  const CommandResult works = Run({"simulate", spec_, "--stages", "2", "--device-memory", least});
  EXPECT_EQ(works.exit_code, 0) << works.err;
  EXPECT_THAT(works.out, HasSubstr("written back"));
  const CommandResult page = Run({"simulate", spec_, "--sweep", "device_memory=64MiB,1GiB",
                                  "--cache", "lru", "--format", "html"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("<a href=\"#memory\">Device memory</a>"));
}

TEST_F(SimulateCommand, RefusesWhatMakesNoSense) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Case cases[] = {
      {{"--stages", "11"}, 2, "10 positions"},
      {{"--stages", "0"}, 2, "--stages"},
      {{"--policy", "casual"}, 2, "--policy"},
      {{"--partition", "5,4"}, 2, "--partition 5,4"},
      {{"--recompute", "5-9"}, 2, "--recompute 5-9: there is no block 9: this supernet has 8"},
      {{"--recompute", "4-1"}, 2, "--recompute 4-1: 4-1 ends before it begins"},
      {{"--recompute", "1-4,4-8"}, 2, "block 4 does not come after block 4"},
      {{"--sweep", "recompute=none,all"}, 2, "\"none\" is no range of blocks"},
      {{"--sweep", "stages"}, 2, "no values"},
      {{"--sweep", "stage=2"}, 2, "\"stage\" cannot be swept"},
      {{"--sweep", "stages=2,x"}, 2, "\"x\" is no whole number"},
      {{"--sweep", "stages=2", "--sweep", "stages=3"}, 2, "swept twice"},
      {{"--sweep", "policy=causal,casual"}, 2, "no such policy"},
      {{"--sweep", "stages=2,3", "--trace", "t.json"}, 2, "--trace is of one run"},
      {{"--timeline", "x"}, 2, "'x' is neither a number of subnets nor a range"},
      {{"--timeline", "9-5"}, 2, "'9-5' is neither a number of subnets nor a range"},
      {{"--timeline", "40-50"}, 2, "it begins at subnet 40, but there are 40"},
      {{"--bandwidth", "0"}, 2, "'0' is no number of 10^9 bytes a second from 1e-09 to 1e+15"},
      {{"--microbatches", "11"}, 2, "--microbatches 11: of a batch of 10 rows"},
      {{"--sweep", "microbatches=2,9"}, 2, "--microbatches 9: of a batch of 10 rows"},
      {{"--device-memory", "64MB"}, 2, "'64MB' is no number of bytes"},
      {{"--device-memory", "1GiB", "--policy", "pipedream"}, 2, "pipedream ignores causality"},
      {{"--device-memory", "1GiB", "--cache", "fifo"}, 2, "--cache"},
      {{"--sweep", "cache=lru,fifo"}, 2, "--cache fifo: no such policy"},
      {{"--sweep", "device_memory=x"}, 2, "'x' is no number of bytes"},
      {{"--cache", "lru"}, 2, "--cache and --host-bandwidth are of stages"},
      {{"--costs", "none.json"}, 3, "none.json: the cost file cannot be read"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments{"simulate", spec_};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.message << "\n" << result.err;
    EXPECT_EQ(result.out, "") << c.message;
    EXPECT_THAT(result.err, HasSubstr(c.message));
  }
}

TEST_F(SimulateCommand, WritesOverNoFileThatItReads) {
  const std::string costs = WriteFile("costs.json", "{}");
  for (const std::vector<std::string>& output : std::vector<std::vector<std::string>>{
           {"-o", spec_}, {"--trace", spec_}, {"-o", costs, "--costs", costs}}) {
    std::vector<std::string> arguments{"simulate", spec_};
    arguments.insert(arguments.end(), output.begin(), output.end());
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(output[1] + " is a file that is read"));
  }
  EXPECT_EQ(ReadFile(spec_), kSpec);
}

TEST_F(SimulateCommand, NeedsTheDataOnlyForImagesOfUnknownShape) {
  const CommandResult result =
      Run({"simulate", WriteFile("sample.json", SampleSpecText()), "--stages", "2"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("there is no folder " + Path("data")));
  EXPECT_THAT(result.err, HasSubstr("--data"));
}

TEST_F(SimulateCommand, HelpHasAnExampleForEveryOption) {
  const CommandResult result = Run({"simulate", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* option :
       {"--stages 8",         "--policy 1f1b",       "--partition 6,6,5",  "--recompute 1-12,13-24",
        "--in-flight 8",      "--microbatches 8",    "--costs costs.json", "--unit-time 2e-7",
        "--bandwidth 25",     "--latency 10",        "--subnets 600",      "--device-memory 64MiB",
        "--cache lru",        "--host-bandwidth 12", "--look-ahead 128",   "--sweep",
        "--timeline 100-139", "--format html",       "-o simulation.html", "--quiet"}) {
    EXPECT_THAT(result.out, HasSubstr(option));
  }
}

}  // namespace
}  // namespace verbatim
