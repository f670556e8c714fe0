// The causal graph names, per access, the latest earlier subnet that uses the same layer.
#include "schedule/causal_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/keyed_random.h"
#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kNone = CausalPredecessors::kNone;

/// By position, of layers without a delay: what is read is what is updated.
std::vector<std::int64_t> AddSubnet(CausalGraph& graph, std::int64_t seq, const Choices& choices) {
  std::vector<std::int64_t> predecessors;
  for (const CausalPredecessors& p : graph.Add(seq, choices)) {
    EXPECT_EQ(p.read, p.base);
    predecessors.push_back(p.read);
  }
  return predecessors;
}

TEST(CausalGraphTest, PredecessorIsTheLatestEarlierUser) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/2, /*candidates=*/2);
  CausalGraph graph(space);
  //                                                    stem  block0 block1 head
  EXPECT_THAT(AddSubnet(graph, 0, Choices{0, 0}), ElementsAre(kNone, kNone, kNone, kNone));
  EXPECT_THAT(AddSubnet(graph, 1, Choices{1, 0}), ElementsAre(0, kNone, 0, 0));
  EXPECT_THAT(AddSubnet(graph, 2, Choices{0, 1}), ElementsAre(1, 0, kNone, 1));
  EXPECT_THAT(AddSubnet(graph, 3, Choices{0, 0}), ElementsAre(2, 2, 1, 2));
}

TEST(CausalGraphTest, LayersThatAreNeverWrittenOrderNothing) {
  const SearchSpace space = MakeTestSpace(/*blocks=*/1, /*candidates=*/1, /*trained_ends=*/false);
  const std::uint16_t skip = 1;
  CausalGraph graph(space);
  EXPECT_THAT(AddSubnet(graph, 0, Choices{skip}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(AddSubnet(graph, 1, Choices{skip}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(AddSubnet(graph, 2, Choices{0}), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(AddSubnet(graph, 3, Choices{0}), ElementsAre(kNone, 2, kNone));
}

TEST(CausalGraphTest, EqualsTheDefinitionOnARandomStream) {
  for (const std::int64_t delay : {0, 1, 3, 1000}) {
    const SearchSpace space = MakeTestSpace(/*blocks=*/5, /*candidates=*/3, true, delay);
    CausalGraph graph(space);
    std::map<std::int64_t, Choices> stream;
    for (std::uint32_t n = 0; n < 200; ++n) {
      const std::int64_t seq = n + n / 7;  // some are left out
      stream[seq] = DrawUniformChoices(space, RandomKey{7, RandomPurpose::kSampler, 0, 0, n});
      const auto predecessors = graph.Add(seq, stream[seq]);
      for (int position = 0; position < space.positions(); ++position) {
        const Layer& layer = space.LayerAt(position, stream[seq]);
        CausalPredecessors expected;
        for (const auto& [i, choices] : stream) {
          const bool is_shared =
              layer.IsVersioned() && i < seq && space.LayerAt(position, choices).id == layer.id;
          if (is_shared) expected.base = i;
          if (is_shared && i < seq - delay) expected.read = i;
        }
        ASSERT_EQ(predecessors[position].read, expected.read) << seq << " at " << position;
        ASSERT_EQ(predecessors[position].base, expected.base) << seq << " at " << position;
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
