// The causal graph names, per access, the latest earlier subnet that uses the same layer.
#include "schedule/causal_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/keyed_random.h"
#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kNone = CausalGraph::kNone;

TEST(CausalGraphTest, PredecessorIsTheLatestEarlierUser) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/2, /*candidates=*/2);
  CausalGraph graph(space);
  //                                                    stem  block0 block1 head
  EXPECT_THAT(graph.Add(0, Choices{0, 0}), ElementsAre(kNone, kNone, kNone, kNone));
  EXPECT_THAT(graph.Add(1, Choices{1, 0}), ElementsAre(0, kNone, 0, 0));
  EXPECT_THAT(graph.Add(2, Choices{0, 1}), ElementsAre(1, 0, kNone, 1));
  EXPECT_THAT(graph.Add(3, Choices{0, 0}), ElementsAre(2, 2, 1, 2));
}

TEST(CausalGraphTest, LayersThatAreNeverWrittenOrderNothing) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/1, /*candidates=*/1, /*trained_ends=*/false);
  const std::uint16_t skip = 1;
  CausalGraph graph(space);
  EXPECT_THAT(graph.Add(0, Choices{skip}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(graph.Add(1, Choices{skip}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(graph.Add(2, Choices{0}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(graph.Add(3, Choices{0}), ElementsAre(kNone, 2, kNone));
}

TEST(CausalGraphTest, EqualsTheDefinitionOnARandomStream) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/5, /*candidates=*/3);
  CausalGraph graph(space);
  std::vector<Choices> stream;
  for (std::uint32_t seq = 0; seq < 200; ++seq) {
    stream.push_back(DrawUniformChoices(space, RandomKey{7, RandomPurpose::kSampler, 0, 0, seq}));
    const auto predecessors = graph.Add(seq, stream.back());
    for (int position = 0; position < space.positions(); ++position) {
      const Layer& layer = space.LayerAt(position, stream[seq]);
      std::int64_t expected = kNone;
      for (std::int64_t i = 0; i < seq && layer.IsVersioned(); ++i) {
        if (space.LayerAt(position, stream[i]).id == layer.id) expected = i;
      }
      ASSERT_EQ(predecessors[position], expected) << "subnet " << seq << " position " << position;
    }
  }
}

}  // namespace
}  // namespace verbatim
