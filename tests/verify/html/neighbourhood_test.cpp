// Proves that the graph joins writers and readers of versions, and stays small.
#include "verify/html/neighbourhood.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_verdicts.h"
#include "tests/verify/synthetic_run.h"

namespace verbatim {
namespace {

Neighbourhood Of(const SyntheticReader& reader, std::int64_t seq,
                 const Verdict& verdict = IntactVerdict()) {
  const auto found = ReadNeighbourhood(reader, *reader.Layers(), verdict, seq);
  EXPECT_TRUE(found.has_value());
  return found.value_or(Neighbourhood{});
}

const NeighbourNode* Find(const Neighbourhood& neighbourhood, std::int64_t seq) {
  for (const NeighbourNode& node : neighbourhood.nodes) {
    if (node.seq == seq) return &node;
  }
  return nullptr;
}

TEST(Neighbourhood, OfAChainIsTwoLevelsEachWay) {
  // One layer per position: every subnet reads what the one before it wrote.
  const SyntheticReader reader({.subnets = 10, .positions = 3, .candidates = 1});
  const Neighbourhood chain = Of(reader, 5);
  ASSERT_EQ(chain.nodes.size(), 5U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(chain.nodes[static_cast<std::size_t>(i)].seq, 3 + i);
    EXPECT_EQ(chain.nodes[static_cast<std::size_t>(i)].level, i - 2);
  }
  ASSERT_EQ(chain.edges.size(), 4U);
  EXPECT_THAT(chain.edges[0].layers, testing::ElementsAre("stem", "block0.0", "head"));
  EXPECT_TRUE(chain.complete);
  EXPECT_EQ(Of(reader, 0).nodes.size(), 3U);
  EXPECT_EQ(Of(reader, 9).nodes.size(), 3U);
  EXPECT_TRUE(Of(reader, 10).nodes.empty());
}

TEST(Neighbourhood, JoinsASubnetToWhatItReadAndToWhatItUpdated) {
  const SyntheticReader reader({.subnets = 12, .positions = 2, .candidates = 1, .delay = 2});
  const Neighbourhood late = Of(reader, 7);
  ASSERT_NE(Find(late, 4), nullptr);  // 7 read it
  ASSERT_NE(Find(late, 6), nullptr);  // and updated what it left
  EXPECT_EQ(Find(late, 4)->level, -1);
  EXPECT_EQ(Find(late, 6)->level, -1);
  EXPECT_EQ(Find(late, 8)->level, 1);
  EXPECT_EQ(Find(late, 10)->level, 1);
}

TEST(Neighbourhood, EdgesAreTheVersionsThatWereRead) {
  const SyntheticReader reader({});
  const Neighbourhood found = Of(reader, 31);
  ASSERT_FALSE(found.edges.empty());
  for (const NeighbourEdge& edge : found.edges) {
    ASSERT_NE(Find(found, edge.from), nullptr);
    ASSERT_NE(Find(found, edge.to), nullptr);
    EXPECT_EQ(Find(found, edge.from)->level + 1, Find(found, edge.to)->level);
    bool reads = false;
    for (int position = 0; position < reader.shape().positions; ++position) {
      reads |= reader.Predecessor(edge.to, position) == edge.from;
    }
    EXPECT_TRUE(reads) << edge.to << " never read " << edge.from;
  }
  // The stem is everybody's: the subnet before is a predecessor, the one after a successor.
  EXPECT_EQ(Find(found, 30)->level, -1);
  EXPECT_EQ(Find(found, 32)->level, 1);
}

TEST(Neighbourhood, ShowsTheNearestOfMany) {
  const SyntheticReader reader({.subnets = 400, .positions = 50, .candidates = 12});
  const Neighbourhood found = Of(reader, 200);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.nodes.size(), 4 * Neighbourhood::kShownPerLevel + 1);
}

TEST(EqualityOf, FollowsTheVerdict) {
  const Verdict compared = ComparedVerdict();
  EXPECT_EQ(EqualityOf(compared, 1), Equality::kEqual);
  EXPECT_EQ(EqualityOf(compared, 2), Equality::kOrigin);
  EXPECT_EQ(EqualityOf(compared, 3), Equality::kTainted);
  EXPECT_EQ(EqualityOf(compared, 4), Equality::kEqual);
  EXPECT_EQ(EqualityOf(compared, 6), Equality::kNotCompared);
  Verdict many = compared;
  many.comparison->origin_count = 1000;  // not all of which were kept
  EXPECT_EQ(EqualityOf(many, 1), Equality::kEqual);
  EXPECT_EQ(EqualityOf(many, 4), Equality::kNotCompared);
  EXPECT_EQ(EqualityOf(EqualVerdict(), 299), Equality::kEqual);
  EXPECT_EQ(EqualityOf(DrawnVerdict(), 0), Equality::kNotCompared);
  EXPECT_EQ(EqualityOf(IntactVerdict(), 0), Equality::kNotCompared);
  EXPECT_EQ(EqualityOf(DifferentVerdict(), 12), Equality::kOrigin);
}

}  // namespace
}  // namespace verbatim
