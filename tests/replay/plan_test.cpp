// Proves which subnets a replay executes, and that what cannot be selected is refused.
#include "replay/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/verify/sample_run.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanTest : public testing::Test {
 protected:
  ReplayPlan Plan(const ReplaySelection& selection) const {
    const auto plan = PlanReplay(reader_, kSampleSubnets, selection);
    VERBATIM_CHECK(plan.has_value(), "{}", plan.error().message);
    return *plan;
  }
  Error Refusal(const ReplaySelection& selection) const {
    const auto plan = PlanReplay(reader_, kSampleSubnets, selection);
    VERBATIM_CHECK(!plan.has_value());
    return plan.error();
  }
  /// By recursion over the versions read, which are the causal predecessors of a sound record.
  void AddCone(std::int64_t seq, std::set<std::int64_t>& cone) const {
    if (seq < 0 || !cone.insert(seq).second) return;
    for (const AccessRow& access : sample_.subnets[static_cast<std::size_t>(seq)].accesses) {
      AddCone(access.read_seq, cone);
    }
  }

  SampleRun sample_ = MakeSampleRun();
  SampleReader reader_{sample_};
};

TEST_F(PlanTest, WithoutASelectionTakesAll) {
  const ReplayPlan plan = Plan({});
  EXPECT_EQ(plan.subnets.size(), 12u);
  EXPECT_TRUE(plan.is_whole());
  EXPECT_EQ(plan.description, "all 12 subnets");
}

TEST_F(PlanTest, TakesAPrefix) {
  const ReplayPlan plan = Plan({.until = 2});
  EXPECT_THAT(plan.subnets, ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.description, "the first 3 of 12 subnets");
  EXPECT_TRUE(Plan({.until = 11}).is_whole());
}

TEST_F(PlanTest, TakesExactlyACausalCone) {
  // The sample's stem and head are shared by all subnets; without them cones are thin.
  for (SubnetRow& subnet : sample_.subnets) {
    subnet.accesses.erase(subnet.accesses.begin());
    subnet.accesses.pop_back();
  }
  bool is_thin = false;
  for (std::int64_t seq = 0; seq < kSampleSubnets; ++seq) {
    std::set<std::int64_t> cone;
    AddCone(seq, cone);
    const ReplayPlan plan = Plan({.subnet = seq});
    EXPECT_THAT(plan.subnets, testing::ElementsAreArray(cone)) << "subnet " << seq;
    EXPECT_THAT(plan.selected, ElementsAre(seq));
    EXPECT_THAT(plan.description,
                HasSubstr(fmt::format("{} of 12 subnets (the causal cone of subnet {})",
                                      cone.size(), seq)));
    is_thin |= static_cast<std::int64_t>(cone.size()) < seq + 1;
  }
  EXPECT_TRUE(is_thin);
}

TEST_F(PlanTest, TakesTheConeOfALayersVersion) {
  const AccessRow access = sample_.subnets[5].accesses[1];
  const std::string& name = sample_.layers[static_cast<std::size_t>(access.layer)].name;
  const ReplayPlan plan = Plan({.version = {{name, 5}}});
  EXPECT_THAT(plan.selected, ElementsAre(5));
  if (access.read_seq >= 0) {
    EXPECT_THAT(Plan({.version = {{name, 4}}}).selected, ElementsAre(access.read_seq));
  }
  EXPECT_EQ(Plan({.version = {{std::to_string(access.layer), 5}}}).subnets, plan.subnets);
}

TEST_F(PlanTest, DrawsBySeed) {
  const ReplayPlan plan = Plan({.draw = {{4, 7}}});
  EXPECT_EQ(plan.selected.size(), 4u);
  EXPECT_TRUE(std::is_sorted(plan.selected.begin(), plan.selected.end()));
  EXPECT_EQ(Plan({.draw = {{4, 7}}}).selected, plan.selected);
  std::set<std::int64_t> drawn;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const std::int64_t seq : Plan({.draw = {{4, seed}}}).selected) drawn.insert(seq);
  }
  EXPECT_EQ(drawn.size(), 12u);
  EXPECT_EQ(Plan({.draw = {{99, 7}}}).selected.size(), 12u);
}

TEST_F(PlanTest, RefusesWhatTheRecordDoesNotHold) {
  EXPECT_THAT(Refusal({.until = 12}).message, HasSubstr("--until 12"));
  EXPECT_THAT(Refusal({.subnet = 12}).hint, HasSubstr("0 to 11"));
  EXPECT_THAT(Refusal({.version = {{"block9.9", 3}}}).message, HasSubstr("block9.9"));
  EXPECT_THAT(Refusal({.version = {{"stem", 12}}}).message, HasSubstr("--at 12"));
  EXPECT_EQ(Refusal({.version = {{"block0.2", 11}}}).kind, ErrorKind::kUsage);  // a skip
}

TEST_F(PlanTest, ReadsTheRecordedThreads) {
  EXPECT_EQ(RecordedThreads(sample_.environment).value(), 3);
  EXPECT_EQ(RecordedThreads({}).value(), 1);
  for (const char* value : {"0", "-1", "two", "", "4 ", "1000000"}) {
    const auto threads = RecordedThreads({{"threads_per_stage", value}});
    ASSERT_FALSE(threads.has_value()) << value;
    EXPECT_EQ(threads.error().kind, ErrorKind::kBadInput);
  }
}

}  // namespace
}  // namespace verbatim
