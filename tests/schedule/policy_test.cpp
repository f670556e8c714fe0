// Each policy's two decisions, in full.
#include "schedule/policy.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace verbatim {
namespace {

constexpr std::string_view kAsynchronous = "asynchronous";

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
      {"sequential", {1, false}, false},  {"gpipe", {0, false}, true},
      {"gpipe", {0, true}, false},        {"gpipe", {1, false}, false},
      {"1f1b", {0, false}, true},         {"1f1b", {0, true}, false},
      {"1f1b", {1, false}, false},        {"pipedream", {3, true}, true},
      {"asynchronous", {0, false}, true}, {"asynchronous", {3, true}, true},
  };
  for (const Case& c : cases) {
    const auto policy = MakePolicy(c.policy);
    ASSERT_TRUE(policy.has_value());
    EXPECT_EQ((*policy)->MayStart(c.view), c.may_start)
        << c.policy << " with " << c.view.unfinished_predecessors << " unfinished predecessors";
    const bool waits = c.view.unfinished_predecessors > 0;
    const bool ignores = std::string_view(c.policy) == "pipedream" || c.policy == kAsynchronous;
    EXPECT_EQ((*policy)->MayUpdate(c.view), ignores || !waits) << c.policy;
  }
}

TEST(PolicyTest, BackwardComesFirst) {
  const Task forward{TaskKind::kForward, 1, 0};
  const Task backward{TaskKind::kBackward, 2, 0};
  for (const char* name : {"causal", "sequential", "1f1b", "pipedream", "asynchronous"}) {
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

TEST(PolicyTest, SequentialRunsOneTaskAtATime) {
  const auto policy = MakePolicy("sequential");
  ASSERT_TRUE(policy.has_value());
  const Task forward{TaskKind::kForward, 1, 0};
  EXPECT_EQ((*policy)->Choose({.forward = forward, .running = 0}), forward);
  EXPECT_EQ((*policy)->Choose({.forward = forward, .running = 1}), std::nullopt);
}

TEST(PolicyTest, GPipeRunsAllForwardsFirst) {
  const auto policy = MakePolicy("gpipe");
  ASSERT_TRUE(policy.has_value());
  const Task forward{TaskKind::kForward, 1, 2};
  const Task backward{TaskKind::kBackward, 1, 0};
  const Task update{TaskKind::kUpdate, 1, 2};
  ReadyView view{.forward = forward, .backward = backward, .microbatches = 3};
  for (const std::int32_t begun : {0, 1, 2}) {
    view.forwards_of_backward = begun;
    EXPECT_EQ((*policy)->Choose(view), forward);
  }
  view.forward.reset();
  EXPECT_EQ((*policy)->Choose(view), std::nullopt) << "a forward is still to come";
  view.forwards_of_backward = 3;
  EXPECT_EQ((*policy)->Choose(view), backward);
  view.update = update;
  EXPECT_EQ((*policy)->Choose(view), update);
}

TEST(PolicyTest, OneForwardOneBackwardBoundsWhatAStageHolds) {
  struct Case {
    const char* policy;
    int stage;          ///< of 4
    std::int64_t most;  ///< micro-batches held
  };
  const Case cases[] = {{"1f1b", 0, 4},      {"1f1b", 1, 3},      {"1f1b", 3, 1},
                        {"pipedream", 0, 8}, {"pipedream", 2, 4}, {"pipedream", 3, 2}};
  const Task forward{TaskKind::kForward, 5, 1};
  const Task backward{TaskKind::kBackward, 5, 0};
  for (const Case& c : cases) {
    const auto policy = MakePolicy(c.policy);
    ASSERT_TRUE(policy.has_value());
    ReadyView view{.forward = forward, .stage = c.stage, .stages = 4, .microbatches = 2};
    view.held = c.most - 1;
    EXPECT_EQ((*policy)->Choose(view), forward) << c.policy << " on stage " << c.stage;
    view.held = c.most;
    EXPECT_EQ((*policy)->Choose(view), std::nullopt) << c.policy << " on stage " << c.stage;
    view.backward = backward;
    EXPECT_EQ((*policy)->Choose(view), backward) << c.policy << " on stage " << c.stage;
  }
}

TEST(PolicyTest, SaysWhichAreCausalAndWhichTrain) {
  std::string causal;
  std::string trained;
  for (const PolicyKind& kind : PolicyKinds()) {
    EXPECT_TRUE(MakePolicy(kind.name).has_value()) << kind.name;
    EXPECT_EQ(CheckTrainable(kind.name).has_value(), kind.is_trainable) << kind.name;
    if (kind.is_causal) causal += std::string(kind.name) + " ";
    if (kind.is_trainable) trained += std::string(kind.name) + " ";
  }
  EXPECT_EQ(causal, "causal sequential gpipe 1f1b ");
  EXPECT_EQ(trained, "causal sequential gpipe 1f1b asynchronous ");
  EXPECT_NE(CheckTrainable("pipedream").error().hint.find("simulate"), std::string::npos);
  EXPECT_EQ(CheckTrainable("casual").error().kind, ErrorKind::kUsage);
}

TEST(PolicyTest, CausalFeedsTheStagesAfterFirst) {
  const Task forward{TaskKind::kForward, 2, 0};
  const Task backward{TaskKind::kBackward, 1, 0};
  const Task update{TaskKind::kUpdate, 0, 0};
  struct Case {
    int stage;
    std::int64_t held;
    std::optional<Task> update;
    Task chosen;
  };
  const Case cases[] = {
      {0, 7, {}, forward},  {0, 8, {}, backward}, {1, 3, {}, forward},
      {1, 4, {}, backward}, {2, 0, {}, backward}, {0, 0, update, update},
  };
  const auto policy = MakePolicy("causal");
  ASSERT_TRUE(policy.has_value());
  for (const Case& c : cases) {
    const ReadyView view{.forward = forward,
                         .backward = backward,
                         .update = c.update,
                         .stage = c.stage,
                         .stages = 3,
                         .held = c.held};
    EXPECT_EQ((*policy)->Choose(view), c.chosen) << "stage " << c.stage << ", held " << c.held;
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
