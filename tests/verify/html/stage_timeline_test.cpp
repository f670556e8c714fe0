// Proves that the window is the one around the subnet asked for, and small whatever the layout.
#include "verify/html/stage_timeline.h"

#include <gtest/gtest.h>

#include "store/format.h"
#include "tests/verify/synthetic_run.h"

namespace verbatim {
namespace {

StageTimeline TimelineOf(const SyntheticReader& reader, std::optional<std::int64_t> focus) {
  const auto timeline = ReadStageTimeline(reader, *reader.Run(), focus);
  EXPECT_TRUE(timeline.has_value());
  return timeline.value_or(StageTimeline{});
}

bool HasSubnet(const StageTimeline& timeline, std::int64_t seq) {
  for (const TimelineBar& bar : timeline.bars) {
    if (bar.seq == seq) return true;
  }
  return false;
}

TEST(StageTimeline, IsAroundTheSubnetAskedFor) {
  const SyntheticReader reader({});
  const StageTimeline start = TimelineOf(reader, std::nullopt);
  EXPECT_TRUE(HasSubnet(start, 0));
  EXPECT_FALSE(HasSubnet(start, 40));
  EXPECT_EQ(start.begin_ns, 0);
  const StageTimeline around = TimelineOf(reader, 40);
  EXPECT_TRUE(HasSubnet(around, 40));
  EXPECT_FALSE(HasSubnet(around, 0));
  EXPECT_TRUE(HasSubnet(TimelineOf(reader, 59), 59));
}

TEST(StageTimeline, AddsUpWhatEachStageDid) {
  const SyntheticReader reader({.subnets = 1});
  const StageTimeline timeline = TimelineOf(reader, std::nullopt);
  ASSERT_EQ(timeline.busy.size(), 3U);
  EXPECT_EQ(timeline.busy[0].forward_ns, 2 * 2'000'000);
  EXPECT_EQ(timeline.busy[2].forward_ns, 2 * 2'600'000);
  EXPECT_EQ(timeline.busy[1].backward_ns, 2 * 4'000'000);
  EXPECT_EQ(timeline.busy[1].update_ns, 200'000);
  for (const StageBusy& busy : timeline.busy) EXPECT_LE(busy.total_ns(), timeline.length_ns());
}

TEST(StageTimeline, IsNarrowedWhereThereIsTooMuchToDraw) {
  const SyntheticReader reader({.subnets = 100, .stages = 12, .microbatches = 32});
  const StageTimeline timeline = TimelineOf(reader, 50);
  EXPECT_LE(timeline.bars.size(), StageTimeline::kBarsMax);
  EXPECT_GT(timeline.bars.size(), StageTimeline::kBarsMax / 8);
  EXPECT_TRUE(HasSubnet(timeline, 50));
}

TEST(StageBusy, StaysWithinItsBoundsWhateverIsRecorded) {
  StageBusy busy;
  for (int i = 0; i < 100; ++i) busy.Add(Phase::kForward, kTimeMaxNs);
  EXPECT_EQ(busy.forward_ns, kTimeMaxNs);
  for (int i = 0; i < 100; ++i) busy.Add(Phase::kUpdate, -kTimeMaxNs);
  EXPECT_EQ(busy.update_ns, -kTimeMaxNs);
  EXPECT_EQ(busy.total_ns(), 0);
}

TEST(StageTimeline, IsEmptyWithoutActivity) {
  const SyntheticReader reader({.subnets = 0});
  EXPECT_TRUE(TimelineOf(reader, std::nullopt).bars.empty());
  EXPECT_TRUE(TimelineOf(reader, 7).bars.empty());
}

}  // namespace
}  // namespace verbatim
