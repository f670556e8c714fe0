// Proves that a trace has the structure that trace viewers read, and that it is streamed.
#include "verify/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/verify/sample_run.h"
#include "tests/verify/synthetic_run.h"

namespace verbatim {
namespace {

using nlohmann::json;

json TraceOf(const RecordReader& reader) {
  std::string text;
  const Status written = WriteTrace(reader, "run.db", [&](std::string_view piece) -> Status {
    text += piece;
    return {};
  });
  EXPECT_TRUE(written.has_value());
  return json::parse(text);
}

std::vector<json> Events(const json& trace, const std::string& type) {
  std::vector<json> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == type) events.push_back(event);
  }
  return events;
}

TEST(WriteTrace, HasATaskForEveryActivity) {
  const SyntheticReader reader({.subnets = 5});
  const json trace = TraceOf(reader);
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["otherData"]["record"], "run.db");
  const auto tasks = Events(trace, "X");
  // Forward and backward per stage and micro-batch, and an update per stage.
  ASSERT_EQ(tasks.size(), 5U * 3U * (2U * 2U + 1U));
  std::map<std::string, int> phases;
  for (const json& task : tasks) {
    ++phases[task["cat"].get<std::string>()];
    EXPECT_EQ(task["pid"], 1);
    EXPECT_GE(task["tid"].get<int>(), 1);
    EXPECT_LE(task["tid"].get<int>(), 3);
    EXPECT_GT(task["dur"].get<double>(), 0.0);
    EXPECT_TRUE(task["args"]["loss"].is_number());
  }
  EXPECT_EQ(phases,
            (std::map<std::string, int>{{"forward", 30}, {"backward", 30}, {"update", 15}}));
  EXPECT_EQ(tasks[0].dump(), R"({"args":{"loss":)" + tasks[0]["args"]["loss"].dump() +
                                 R"(,"microbatch":0,"subnet":0},"cat":"forward","dur":2000.0,)"
                                 R"("name":"forward 0","ph":"X","pid":1,"tid":1,"ts":0.0})");
}

TEST(WriteTrace, NamesProcessAndStages) {
  std::vector<std::string> names;
  for (const json& event : Events(TraceOf(SyntheticReader({.subnets = 0})), "M")) {
    if (event["args"].contains("name")) names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names, testing::ElementsAre("run.db", "stage 0", "stage 1", "stage 2"));
}

TEST(WriteTrace, FlowsLeadFromUpdatesToTheForwardsThatReadThem) {
  const json trace = TraceOf(SyntheticReader({.subnets = 20}));
  std::map<int, json> starts;
  for (const json& event : Events(trace, "s")) starts[event["id"]] = event;
  const auto ends = Events(trace, "f");
  ASSERT_GT(ends.size(), 19U);  // the stem alone gives one to every subnet but the first
  EXPECT_EQ(starts.size(), ends.size());
  const auto begins_task = [&](const json& event, const char* phase) {
    for (const json& task : Events(trace, "X")) {
      if (task["cat"] == phase && task["tid"] == event["tid"] && task["ts"] == event["ts"]) {
        return true;
      }
    }
    return false;
  };
  for (const json& end : ends) {
    const json& start = starts[end["id"]];
    EXPECT_EQ(start["tid"], end["tid"]);
    EXPECT_LT(start["ts"].get<double>(), end["ts"].get<double>());
    EXPECT_TRUE(begins_task(start, "update"));
    EXPECT_TRUE(begins_task(end, "forward"));
  }
}

TEST(WriteTrace, FlowsLeadToReadersOfOlderVersionsToo) {
  const auto count = [](std::int64_t delay) {
    return Events(
               TraceOf(SyntheticReader(
                   {.subnets = 80, .positions = 2, .candidates = 1, .stages = 2, .delay = delay})),
               "f")
        .size();
  };
  EXPECT_EQ(count(0), 2U * 79U);
  EXPECT_EQ(count(4), 2U * 75U);
  EXPECT_EQ(count(63), 2U * 16U);
  EXPECT_EQ(count(64), 0U);
}

TEST(WriteTrace, FlowsFollowALayerThatMoves) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.resize(2);
  for (SubnetRow& row : sample.subnets) {
    const auto stage = static_cast<std::int32_t>(row.seq);
    row.activities = {{stage, 0, Phase::kForward, 100 * row.seq, 100 * row.seq + 10},
                      {stage, 0, Phase::kUpdate, 100 * row.seq + 20, 100 * row.seq + 30}};
    for (AccessRow& access : row.accesses) access.stage = stage;
  }
  const json trace = TraceOf(SampleReader(sample));
  const auto starts = Events(trace, "s");
  const auto ends = Events(trace, "f");
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(starts[0]["tid"], 1);
  EXPECT_EQ(ends[0]["tid"], 2);
  EXPECT_DOUBLE_EQ(starts[0]["ts"].get<double>(), 0.02);
  EXPECT_DOUBLE_EQ(ends[0]["ts"].get<double>(), 0.1);
}

TEST(WriteTrace, OfARecordWithoutActivityIsStillOne) {
  const SampleRun sample = MakeSampleRun();
  EXPECT_TRUE(Events(TraceOf(SampleReader(sample)), "X").empty());
}

TEST(WriteTrace, WritesALossThatIsNoNumber) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.resize(1);
  sample.subnets[0].loss_bits = 0x7fc00000;
  sample.subnets[0].activities = {{0, 0, Phase::kForward, 10, 20}};
  const auto tasks = Events(TraceOf(SampleReader(sample)), "X");
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0]["args"]["loss"], "NaN");
}

TEST(WriteTrace, HoldsTheLargestStageThatARecordCanClaim) {
  SampleRun sample = MakeSampleRun();
  sample.subnets.resize(1);
  sample.subnets[0].activities = {{2147483647, 0, Phase::kForward, 10, 20}};
  const auto tasks = Events(TraceOf(SampleReader(sample)), "X");
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0]["tid"], 2147483648);
}

TEST(WriteTrace, StopsWhereItCannotWrite) {
  const SyntheticReader reader({.subnets = 1000});
  int pieces = 0;
  const Status written = WriteTrace(reader, "run.db", [&](std::string_view) -> Status {
    if (++pieces > 100) return Failed("disk full");
    return {};
  });
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().message, "disk full");
  EXPECT_EQ(pieces, 101);
}

TEST(WriteTrace, ReturnsTheReadersError) {
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetUnreadableFrom(3);
  const Status written = WriteTrace(reader, "run.db", [](std::string_view) { return Status(); });
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().message, "row is unreadable");
}

}  // namespace
}  // namespace verbatim
