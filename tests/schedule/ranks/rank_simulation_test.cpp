// Proves over thousands of simulated runs that ranks which know only what they are told compute
// what the sequential reference computes, whatever the network's delays, and that a rank's end
// leaves nobody waiting.
//
// By hand, any number of seeds:
//   VERBATIM_TEST_SEEDS=10000 build/dev/tests/schedule/schedule_test --gtest_filter='RankSim*'
#include "tests/schedule/ranks/rank_simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace verbatim {
namespace {

using ranks_test::DrawCase;
using ranks_test::Ending;
using ranks_test::Mutation;
using ranks_test::Packet;
using ranks_test::RankCase;
using ranks_test::RankResult;
using ranks_test::RankSimulation;
using ranks_test::Trouble;
using ranks_test::VirtualNetwork;

std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::stoull(given) : otherwise;
}

/// One seed that is given, or a row of them.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
};

Seeds SeedsToTry(std::uint64_t count) {
  if (std::getenv("VERBATIM_TEST_SEED") != nullptr) return {Number("VERBATIM_TEST_SEED", 1), 1};
  return {1, Number("VERBATIM_TEST_SEEDS", count)};
}

std::string Repeat(const RankCase& drawn, const std::string& test) {
  return drawn.description + "\nrepeat: VERBATIM_TEST_SEED=" + std::to_string(drawn.seed) +
         " build/dev/tests/schedule/schedule_test --gtest_filter=RankSimulationTest." + test;
}

std::string Text(const RankResult& result) {
  std::string text = result.is_stuck ? "stuck" : "";
  for (const std::string& difference : result.differences) text += "\n" + difference;
  return text;
}

TEST(RankSimulationTest, ComputesTheSequentialReference) {
  const Seeds seeds = SeedsToTry(300);
  std::int64_t accesses = 0, packets = 0, versions_moved = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    RankCase drawn = DrawCase(seed);
    SCOPED_TRACE(Repeat(drawn, "ComputesTheSequentialReference"));
    const RankResult result = RankSimulation(std::move(drawn)).Run();
    ASSERT_TRUE(result.IsSound()) << Text(result);
    ASSERT_EQ(result.finished, result.planned);
    for (const Ending ending : result.endings) ASSERT_EQ(ending, Ending::kComplete);
    accesses += result.accesses;
    packets += result.packets;
    versions_moved += result.versions_moved;
  }
  std::cout << seeds.count << " runs: " << accesses << " accesses, " << packets << " messages, "
            << versions_moved << " versions moved\n";
  EXPECT_GT(versions_moved, 0);
}

TEST(RankSimulationTest, NobodyWaitsForARankThatIsGone) {
  const Seeds seeds = SeedsToTry(300);
  std::int64_t failed = 0, complete = 0, stopped = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    RankCase drawn = DrawCase(seed, /*has_trouble=*/true);
    SCOPED_TRACE(Repeat(drawn, "NobodyWaitsForARankThatIsGone"));
    const Trouble trouble = drawn.trouble;
    const std::int64_t noticed =
        drawn.trouble_at + drawn.peer_timeout + VirtualNetwork<Packet>::kLatencyMax;
    const RankResult result = RankSimulation(std::move(drawn)).Run();
    ASSERT_TRUE(result.IsSound()) << Text(result);
    const auto count = [&](Ending ending) {
      return std::count(result.endings.begin(), result.endings.end(), ending);
    };
    ASSERT_TRUE(count(Ending::kComplete) == 0 || count(Ending::kFailed) == 0) << "all agree";
    const bool is_complete = count(Ending::kComplete) > 0;
    if (trouble == Trouble::kStop) {
      ASSERT_TRUE(is_complete);
      ASSERT_EQ(result.finished, result.admitted) << "what was admitted is finished";
      stopped += result.finished < result.planned;
    } else if (is_complete) {
      ASSERT_EQ(result.finished, result.planned);
    } else if (trouble == Trouble::kCrash) {
      ASSERT_LE(result.ended_at, noticed) << "in time";
    }
    ++(is_complete ? complete : failed);
  }
  std::cout << seeds.count << " runs: " << failed << " failed, " << complete
            << " complete, of those " << stopped << " stopped early\n";
  if (seeds.count < 100) return;
  EXPECT_GT(failed, 0);
  EXPECT_GT(complete, stopped);
  EXPECT_GT(stopped, 0);
}

TEST(RankSimulationTest, IsAFunctionOfItsSeed) {
  for (const std::uint64_t seed : {3, 4, 5}) {
    const RankResult first = RankSimulation(DrawCase(seed, true)).Run();
    const RankResult second = RankSimulation(DrawCase(seed, true)).Run();
    EXPECT_EQ(first.packets, second.packets);
    EXPECT_EQ(first.ended_at, second.ended_at);
    EXPECT_EQ(first.finished, second.finished);
  }
}

/// The test would be worth nothing if it could not fail.
class RankMutationTest : public ::testing::TestWithParam<std::pair<std::string, Mutation>> {};

TEST_P(RankMutationTest, IsNoticed) {
  int noticed = 0, tried = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RankCase drawn = DrawCase(seed);
    if (drawn.placement.ranks() == 1) continue;
    drawn.mutation = GetParam().second;
    ++tried;
    noticed += !RankSimulation(std::move(drawn)).Run().IsSound();
  }
  std::cout << GetParam().first << ": noticed in " << noticed << " of " << tried << " runs\n";
  EXPECT_GE(noticed, tried / 2) << "of " << tried;
}

INSTANTIATE_TEST_SUITE_P(All, RankMutationTest,
                         ::testing::Values(std::pair("VersionBeforeItsState",
                                                     Mutation::kVersionBeforeItsState),
                                           std::pair("OlderVersion", Mutation::kOlderVersion),
                                           std::pair("LostVersion", Mutation::kLostVersion),
                                           std::pair("ReorderedLinks", Mutation::kReorderedLinks),
                                           std::pair("NoWaiting", Mutation::kNoWaiting)),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace verbatim
