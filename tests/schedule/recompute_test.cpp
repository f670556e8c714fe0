// A plan's segments cover a stage's range without gaps, cut where the stage ends; what is typed
// wrong is refused with what to type instead.
#include "schedule/recompute.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

using Segments = std::vector<RangeSegment>;

RecomputePlan PlanOf(const std::string& name, const SearchSpace& space) {
  auto plan = RecomputePlan::Make(name, space);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return plan.value_or(RecomputePlan());
}

TEST(RecomputeTest, SegmentsOfAStage) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/8, /*candidates=*/2);  // head: position 9
  struct Case {
    const char* name;
    int begin;
    int end;
    Segments expected;
  };
  const Case cases[] = {
      {"none", 0, 10, {{0, 10, false}}},
      {"none", 3, 5, {{3, 5, false}}},
      {"2-4", 0, 10, {{0, 2, false}, {2, 5, true}, {5, 10, false}}},
      {"2-4", 0, 3, {{0, 2, false}, {2, 3, true}}},
      {"2-4", 3, 4, {{3, 4, true}}},
      {"2-4", 3, 7, {{3, 5, true}, {5, 7, false}}},
      {"2-4", 5, 10, {{5, 10, false}}},
      {"1-4,5-8", 0, 10, {{0, 1, false}, {1, 5, true}, {5, 9, true}, {9, 10, false}}},
      {"1-8", 0, 5, {{0, 1, false}, {1, 5, true}}},
      {"1,3,8", 1, 9, {{1, 2, true}, {2, 3, false}, {3, 4, true}, {4, 8, false}, {8, 9, true}}},
      {"all", 6, 10, {{6, 7, true}, {7, 8, true}, {8, 9, true}, {9, 10, false}}}};
  for (const Case& c : cases) {
    EXPECT_EQ(PlanOf(c.name, space).Segments(c.begin, c.end), c.expected)
        << c.name << " in [" << c.begin << ", " << c.end << ")";
  }
  EXPECT_TRUE(PlanOf("none", space).empty());
  EXPECT_FALSE(PlanOf("all", space).empty());
}

TEST(RecomputeTest, SegmentsCoverEveryRangeWithoutGaps) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/8, /*candidates=*/2);
  for (const char* name : {"none", "all", "1-8", "2-3,5,7-8", "4"}) {
    const RecomputePlan plan = PlanOf(name, space);
    for (int begin = 0; begin < space.positions(); ++begin) {
      for (int end = begin + 1; end <= space.positions(); ++end) {
        int next = begin;
        for (const RangeSegment& segment : plan.Segments(begin, end)) {
          EXPECT_EQ(segment.begin, next) << name;
          EXPECT_LT(segment.begin, segment.end) << name;
          next = segment.end;
        }
        EXPECT_EQ(next, end) << name;
      }
    }
  }
}

TEST(RecomputeTest, BackwardsThatBeginWithTheForwardCostIt) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/3, /*candidates=*/2);
  const CostTable costs = MakeTestCosts(space);
  const CostTable more = PlanOf("2-3", space).Costs(costs, space);
  for (const Layer& layer : space.layers()) {
    LayerCost expected = costs.layers[layer.id];
    if (layer.position == 2 || layer.position == 3) expected.backward += expected.forward;
    EXPECT_EQ(more.layers[layer.id], expected) << layer.name;
  }
}

TEST(RecomputeTest, WhatIsTypedWrongIsRefused) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/8, /*candidates=*/2);
  const std::pair<const char*, const char*> cases[] = {
      {"", "\"\" is no range of blocks"},
      {"some", "\"some\" is no range of blocks"},
      {"1-2,", "\"\" is no range of blocks"},
      {",1-2", "\"\" is no range of blocks"},
      {"1-", "\"1-\" is no range of blocks"},
      {"-3", "\"-3\" is no range of blocks"},
      {"1-2-3", "\"1-2-3\" is no range of blocks"},
      {"1--2", "\"1--2\" is no range of blocks"},
      {"1 -2", "\"1 -2\" is no range of blocks"},
      {"+1", "\"+1\" is no range of blocks"},
      {"1.5", "\"1.5\" is no range of blocks"},
      {"1-99999999999", "\"1-99999999999\" is no range of blocks"},
      {"all,2", "\"all\" is no range of blocks"},
      {"5-3", "5-3 ends before it begins"},
      {"0-3", "there is no block 0: the stem is always kept"},
      {"0", "there is no block 0"},
      {"7-9", "there is no block 9: this supernet has 8"},
      {"9", "there is no block 9"},
      {"1-4,4-8", "block 4 does not come after block 4"},
      {"5-8,1-4", "block 1 does not come after block 8"},
      {"3,3", "block 3 does not come after block 3"}};
  for (const auto& [name, problem] : cases) {
    const auto plan = RecomputePlan::Make(name, space);
    ASSERT_FALSE(plan.has_value()) << name;
    EXPECT_EQ(plan.error().kind, ErrorKind::kUsage) << name;
    EXPECT_NE(plan.error().message.find(std::string("--recompute ") + name + ": "),
              std::string::npos)
        << plan.error().message;
    EXPECT_NE(plan.error().message.find(problem), std::string::npos) << plan.error().message;
    EXPECT_NE(plan.error().hint.find("from 1 to 8"), std::string::npos) << plan.error().hint;
  }
}

}  // namespace
}  // namespace verbatim
