// Each policy's two decisions, in full.
#include "schedule/policy.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(PolicyTest, WhenASubnetMayStart) {
  struct Case {
    const char* policy;
    StartView view;
    bool may_start;
  };
  const Case cases[] = {
      {"causal", {0, false}, true},       {"causal", {0, true}, true},
      {"causal", {1, true}, false},       {"sequential", {0, false}, true},
      {"sequential", {0, true}, false},   {"sequential", {2, true}, false},
      {"asynchronous", {0, false}, true}, {"asynchronous", {3, true}, true},
  };
  for (const Case& c : cases) {
    const auto policy = MakePolicy(c.policy);
    ASSERT_TRUE(policy.has_value());
    EXPECT_EQ((*policy)->MayStart(c.view), c.may_start)
        << c.policy << " with " << c.view.unfinished_predecessors << " unfinished predecessors";
  }
}

TEST(PolicyTest, BackwardComesFirst) {
  const Task forward{TaskKind::kForward, 1, 0};
  const Task backward{TaskKind::kBackward, 2, 0};
  for (const char* name : {"causal", "sequential", "asynchronous"}) {
    const auto policy = MakePolicy(name);
    ASSERT_TRUE(policy.has_value());
    const auto choose = [&](std::optional<Task> f, std::optional<Task> b, std::optional<Task> u) {
      return (*policy)->Choose({.forward = f, .backward = b, .update = u});
    };
    const Task update{TaskKind::kUpdate, 3, 0};
    EXPECT_EQ(choose(forward, backward, update), update);
    EXPECT_EQ(choose(forward, backward, {}), backward);
    EXPECT_EQ(choose(forward, {}, {}), forward);
    EXPECT_EQ(choose({}, backward, {}), backward);
    EXPECT_EQ(choose({}, {}, {}), std::nullopt);
  }
}

TEST(PolicyTest, UnknownNameSaysWhichThereAre) {
  const auto policy = MakePolicy("casual");
  ASSERT_FALSE(policy.has_value());
  EXPECT_EQ(policy.error().kind, ErrorKind::kUsage);
  EXPECT_NE(policy.error().hint.find("causal"), std::string::npos);
}

}  // namespace
}  // namespace verbatim
