// Proves that a cone is exactly the transitive closure of causal predecessors.
#include "schedule/causal_cone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Uses = std::vector<std::int32_t>;

CausalHistory HistoryOf(const std::vector<Uses>& stream, std::int32_t layers) {
  CausalHistory history(layers);
  for (const Uses& uses : stream) history.Add(uses);
  return history;
}

std::vector<std::int64_t> ConeOf(const CausalHistory& history, std::int64_t target) {
  return history.Cone(std::array{target});
}

TEST(CausalCone, FollowsPredecessorsAndNothingElse) {
  const CausalHistory history =
      HistoryOf({{0, 4}, {1, 5}, {0, 6}, {2, 5}, {3, 7}, {2, 6}}, /*layers=*/8);
  EXPECT_THAT(ConeOf(history, 0), ElementsAre(0));
  EXPECT_THAT(ConeOf(history, 2), ElementsAre(0, 2));
  EXPECT_THAT(ConeOf(history, 4), ElementsAre(4));
  EXPECT_THAT(ConeOf(history, 5), ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(history.Cone(std::array<std::int64_t, 3>{4, 2, 4}), ElementsAre(0, 2, 4));
  EXPECT_THAT(history.Cone({}), IsEmpty());
}

TEST(CausalCone, ASubnetWithoutVersionedLayersDependsOnNothing) {
  const CausalHistory history = HistoryOf({{0}, {}, {0}}, /*layers=*/1);
  EXPECT_THAT(ConeOf(history, 1), ElementsAre(1));
  EXPECT_THAT(ConeOf(history, 2), ElementsAre(0, 2));
}

TEST(CausalCone, NamesTheLastWriterOfALayer) {
  const CausalHistory history = HistoryOf({{0}, {1}, {0}, {1}}, /*layers=*/3);
  EXPECT_EQ(history.LastWriter(0, 3), 2);
  EXPECT_EQ(history.LastWriter(0, 1), 0);
  EXPECT_EQ(history.LastWriter(1, 0), -1);
  EXPECT_EQ(history.LastWriter(2, 3), -1);
  EXPECT_EQ(history.LastWriter(1, 99), 3);
}

TEST(CausalCone, HoldsTheWholeChainThatALateReaderUpdates) {
  // With a delay of 2 subnet 4 reads the version of subnet 0, but updates that of subnet 3.
  const CausalHistory history = HistoryOf({{0}, {0, 1}, {0}, {0, 2}, {0}}, /*layers=*/3);
  EXPECT_THAT(ConeOf(history, 4), ElementsAre(0, 1, 2, 3, 4));
}

TEST(CausalCone, EqualsTheClosureOfPredecessorsOnRandomStreams) {
  constexpr std::int32_t kLayers = 30;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<Uses> stream(80);
    std::vector<std::int64_t> last_writer(kLayers, -1);
    std::vector<std::set<std::int64_t>> closure(stream.size());
    for (std::size_t seq = 0; seq < stream.size(); ++seq) {
      closure[seq].insert(static_cast<std::int64_t>(seq));
      for (std::int32_t layer = 0; layer < kLayers; ++layer) {
        if (random() % 20 != 0) continue;
        stream[seq].push_back(layer);
        if (last_writer[layer] >= 0) {
          closure[seq].insert(closure[last_writer[layer]].begin(),
                              closure[last_writer[layer]].end());
        }
        last_writer[layer] = static_cast<std::int64_t>(seq);
      }
    }
    const CausalHistory history = HistoryOf(stream, kLayers);
    for (std::size_t seq = 0; seq < stream.size(); ++seq) {
      ASSERT_THAT(ConeOf(history, static_cast<std::int64_t>(seq)),
                  testing::ElementsAreArray(closure[seq]))
          << "subnet " << seq << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace verbatim
