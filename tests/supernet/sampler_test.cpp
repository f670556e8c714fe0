// Proves the streams of `fair` and `reorder` to the bit (literals from tests/reference/samplers.py,
// written from docs/spec.md), what each promises of its stream, and that a draw depends on nothing
// but its number. Seeds are fixed: the tests below repeat exactly.
#include "supernet/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <thread>

#include "supernet/fair_sampler.h"
#include "supernet/list_sampler.h"
#include "supernet/reorder_sampler.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// Blocks with these numbers of candidates; the first candidate of each is not versioned.
ChoiceSpace SpaceOf(const std::vector<std::size_t>& candidates) {
  ChoiceSpace space;
  for (const std::size_t count : candidates) {
    space.versioned.emplace_back(count, true)[0] = false;
  }
  return space;
}

ChoiceSpace TwelveBlocks() {
  return SpaceOf({5, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4, 4});
}

SamplerSpec Fair(std::optional<std::int64_t> distance = std::nullopt) {
  SamplerSpec sampler;
  sampler.kind = SamplerKind::kFair;
  sampler.reuse_distance = distance;
  return sampler;
}

/// Uniform draws, or fair ones, reordered.
Spec Reordered(const SamplerSpec& of, std::int64_t subnets, std::int64_t window,
               std::int64_t neighbours) {
  Spec spec;
  spec.seed = 1;
  spec.training.subnets = subnets;
  spec.sampler = {
      .kind = SamplerKind::kReorder, .of = {of}, .window = window, .neighbours = neighbours};
  return spec;
}

std::vector<Choices> DrawAll(const Sampler& sampler, std::int64_t subnets) {
  std::vector<Choices> stream;
  for (std::int64_t seq = 0; seq < subnets; ++seq) stream.push_back(sampler.Draw(seq));
  return stream;
}

std::vector<int> Column(const std::vector<Choices>& stream, std::size_t block) {
  std::vector<int> column;
  for (const Choices& choices : stream) column.push_back(choices[block]);
  return column;
}

/// Sum of (observed - expected)² / expected over equally likely cells.
double ChiSquare(const std::vector<int>& counts) {
  const double expected =
      std::accumulate(counts.begin(), counts.end(), 0.0) / double(counts.size());
  return std::accumulate(counts.begin(), counts.end(), 0.0, [&](double sum, int count) {
    return sum + (count - expected) * (count - expected) / expected;
  });
}

TEST(FairSampler, IsLiteral) {
  const FairSampler four(Fair(), 1, SpaceOf({4}));
  EXPECT_THAT(Column(DrawAll(four, 16), 0),
              ElementsAre(3, 0, 2, 1, 3, 2, 1, 0, 3, 0, 2, 1, 0, 1, 3, 2));
  const FairSampler five(Fair(), 1, SpaceOf({5}));
  EXPECT_THAT(Column(DrawAll(five, 15), 0),
              ElementsAre(4, 0, 3, 2, 1, 4, 3, 1, 2, 0, 4, 2, 0, 3, 1));
  const FairSampler twelve(Fair(), 1, TwelveBlocks());
  EXPECT_THAT(twelve.Draw(0), ElementsAre(4, 2, 2, 4, 2, 4, 2, 3, 3, 0, 1, 0));
  EXPECT_THAT(twelve.Draw(299), ElementsAre(2, 4, 4, 0, 0, 1, 0, 2, 1, 1, 3, 3));
  const FairSampler far(Fair(4), 0x123456789abcdef0, TwelveBlocks());
  EXPECT_THAT(far.Draw(19), ElementsAre(2, 4, 1, 1, 1, 0, 2, 3, 0, 2, 2, 1));
}

TEST(FairSampler, KeepsTheDistanceAndReachesIt) {
  const std::size_t counts[] = {1, 2, 3, 4, 7, 12, 23};
  for (const std::size_t count : counts) {
    for (std::size_t distance = 0; distance <= count; ++distance) {
      const FairSampler sampler(Fair(std::int64_t(distance)), 3, SpaceOf({count}));
      const std::vector<int> column = Column(DrawAll(sampler, 4000), 0);
      std::map<int, std::size_t> last;
      std::size_t nearest = column.size();
      for (std::size_t seq = 0; seq < column.size(); ++seq) {
        const auto [use, first] = last.try_emplace(column[seq], seq);
        if (!first) nearest = std::min(nearest, seq - use->second);
        use->second = seq;
      }
      EXPECT_EQ(nearest, std::max<std::size_t>(distance, 1))
          << count << " candidates, distance " << distance;
    }
  }
}

TEST(FairSampler, UsesEveryCandidateEquallyOftenAtAnyTime) {
  const FairSampler sampler(Fair(), 2, SpaceOf({5, 4, 7, 1}));
  std::vector<std::vector<int>> counts = {std::vector<int>(5), std::vector<int>(4),
                                          std::vector<int>(7), std::vector<int>(1)};
  for (std::int64_t seq = 0; seq < 1000; ++seq) {
    const Choices choices = sampler.Draw(seq);
    for (std::size_t block = 0; block < counts.size(); ++block) {
      ++counts[block][choices[block]];
      const auto [least, most] = std::minmax_element(counts[block].begin(), counts[block].end());
      ASSERT_LE(*most - *least, 1) << "block " << block << ", seq " << seq;
    }
  }
}

TEST(FairSampler, EveryOrderThatKeepsTheDistanceIsEquallyLikely) {
  // A round of four as places in the round before, two subnets apart or more: 3 · 3 · 2 · 1 orders.
  const FairSampler sampler(Fair(2), 5, SpaceOf({4}));
  const std::vector<int> column = Column(DrawAll(sampler, 40000), 0);
  std::map<std::vector<std::ptrdiff_t>, int> orders;
  for (auto round = column.begin() + 4; round != column.end(); round += 4) {
    std::vector<std::ptrdiff_t> places;
    for (auto use = round; use != round + 4; ++use) {
      places.push_back(std::find(round - 4, round, *use) - (round - 4));
    }
    ++orders[places];
  }
  std::vector<int> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  EXPECT_EQ(counts.size(), 18u);
  EXPECT_LT(ChiSquare(counts), 47.6);  // 99.99 % point of chi-square, 17 degrees of freedom
}

TEST(FairSampler, BlocksAreIndependentAndNoSubnetIsPreferred) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const FairSampler sampler(Fair(), seed, TwelveBlocks());
    std::vector<int> unlike(20), alike(25), first(5);
    for (std::int64_t seq = 0; seq < 20000; ++seq) {
      const Choices choices = sampler.Draw(seq);
      ++unlike[choices[0] * 4u + choices[6]];
      ++alike[choices[2] * 5u + choices[3]];
      if (seq % 5 == 4) ++first[choices[1]];  // last of its round: in no round's favour
    }
    EXPECT_LT(ChiSquare(unlike), 50.8) << "seed " << seed;  // 99.99 %, 19 degrees of freedom
    EXPECT_LT(ChiSquare(alike), 58.6) << "seed " << seed;   // 24
    EXPECT_LT(ChiSquare(first), 23.5) << "seed " << seed;   // 4
  }
}

/// The place in `inner` of every subnet of `stream`; both hold the same subnets, none twice.
std::vector<std::int64_t> Places(const std::vector<Choices>& stream,
                                 const std::vector<Choices>& inner) {
  std::map<Choices, std::int64_t> place;
  for (const Choices& choices : inner) place.emplace(choices, std::ssize(place));
  EXPECT_EQ(place.size(), inner.size()) << "the test needs different draws";
  std::vector<std::int64_t> places;
  for (const Choices& choices : stream) places.push_back(place.at(choices));
  return places;
}

std::vector<std::int64_t> ReorderedPlaces(const Spec& spec, const ChoiceSpace& space) {
  Spec inner = spec;
  inner.sampler = spec.sampler.of[0];
  const auto sampler = MakeSampler(spec, space, "");
  const auto of = MakeSampler(inner, space, "");
  if (!sampler || !of) return {};
  return Places(DrawAll(**sampler, spec.training.subnets), DrawAll(**of, spec.training.subnets));
}

TEST(ReorderSampler, IsLiteral) {
  EXPECT_THAT(
      ReorderedPlaces(Reordered({}, 40, 4, 3), TwelveBlocks()),
      ElementsAre(0, 3, 5, 4, 2, 7, 1, 8, 10, 12, 13, 14, 6, 15, 11, 9, 19, 18, 21, 22, 17, 24, 20,
                  16, 23, 26, 25, 29, 30, 27, 33, 34, 35, 28, 36, 31, 37, 39, 32, 38));
  const auto places = ReorderedPlaces(Reordered({}, 300, 128, 16), TwelveBlocks());
  EXPECT_THAT(std::vector(places.begin(), places.begin() + 12),
              ElementsAre(0, 5, 113, 71, 61, 46, 103, 130, 92, 37, 109, 66));
  EXPECT_THAT(std::vector(places.end() - 8, places.end()),
              ElementsAre(213, 215, 295, 17, 51, 118, 294, 59));
}

TEST(ReorderSampler, PermutesWithinItsBounds) {
  const struct {
    std::int64_t subnets, window, neighbours;
  } cases[] = {{500, 1, 16}, {500, 2, 1}, {500, 7, 5}, {500, 128, 16}, {90, 128, 16}, {1, 1, 1}};
  for (const auto& c : cases) {
    for (const SamplerSpec& of : {SamplerSpec{}, Fair(2)}) {
      auto places = ReorderedPlaces(Reordered(of, c.subnets, c.window, c.neighbours),
                                    SpaceOf(std::vector<std::size_t>(16, 6)));
      for (std::int64_t seq = 0; seq < std::ssize(places); ++seq) {
        const std::int64_t place = places[static_cast<std::size_t>(seq)];
        EXPECT_LE(seq, place + 4 * c.window);
        EXPECT_LT(place, seq + c.window);
      }
      std::sort(places.begin(), places.end());
      std::vector<std::int64_t> all(static_cast<std::size_t>(c.subnets));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(places, all) << c.subnets << " subnets, window " << c.window;
    }
  }
}

TEST(ReorderSampler, TakesADrawThatIsDue) {
  // Draw 1 repeats draw 0, all others share nothing: it is put off for as long as may be.
  std::vector<std::uint16_t> list = {1, 1};
  for (std::uint16_t candidate = 2; candidate < 20; ++candidate) list.push_back(candidate);
  const auto subnets = static_cast<std::int64_t>(list.size());
  const ReorderSampler sampler({.kind = SamplerKind::kReorder, .window = 2, .neighbours = 16},
                               std::make_unique<ListSampler>(list, 1), subnets, SpaceOf({20}));
  EXPECT_THAT(Column(DrawAll(sampler, 11), 0), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10));
}

TEST(ReorderSampler, MindsVersionedLayersOnly) {
  ChoiceSpace frozen = TwelveBlocks();
  for (auto& block : frozen.versioned) block.assign(block.size(), false);
  std::vector<std::int64_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THAT(ReorderedPlaces(Reordered({}, 200, 16, 16), frozen), ElementsAreArray(all));
}

TEST(ReorderSampler, SharesLessThanItsInnerSampler) {
  const ChoiceSpace space = SpaceOf(std::vector<std::size_t>(24, 12));
  Spec spec = Reordered({}, 600, 64, 8);
  const auto neighbours_share = [&](const Spec& of) {
    const auto stream = DrawAll(*MakeSampler(of, space, "").value(), 600);
    int shared = 0;
    for (std::size_t seq = 1; seq < stream.size(); ++seq) {
      for (std::size_t block = 0; block < space.blocks(); ++block) {
        const std::uint16_t candidate = stream[seq][block];
        shared += candidate != 0 && candidate == stream[seq - 1][block];
      }
    }
    return shared;
  };
  const int reordered = neighbours_share(spec);
  spec.sampler = {};
  EXPECT_LT(2 * reordered, neighbours_share(spec));
}

/// Every kind whose draws follow from those before.
std::vector<Spec> SequentialSpecs() {
  Spec fair = Reordered({}, 10000, 32, 8);
  fair.sampler = Fair();
  return {fair, Reordered({}, 10000, 32, 8), Reordered(Fair(1), 10000, 32, 8)};
}

TEST(SequentialSampler, MayBeAskedInAnyOrder) {
  constexpr auto kKept = static_cast<std::int64_t>(SequentialSampler::kKept);
  for (const Spec& spec : SequentialSpecs()) {
    const auto stream = DrawAll(*MakeSampler(spec, TwelveBlocks(), "").value(), 10000);
    const auto sampler = MakeSampler(spec, TwelveBlocks(), "").value();
    for (const std::int64_t seq :
         {9999L, 9999 - kKept + 1, 9999 - kKept, 0L, 5L, 3L, kKept - 1, kKept, 0L, 9000L, 9001L}) {
      EXPECT_EQ(sampler->Draw(seq), stream[static_cast<std::size_t>(seq)]) << "seq " << seq;
    }
  }
}

TEST(SequentialSampler, MayBeAskedFromAnyThread) {
  for (const Spec& spec : SequentialSpecs()) {
    const auto stream = DrawAll(*MakeSampler(spec, TwelveBlocks(), "").value(), 2000);
    const auto sampler = MakeSampler(spec, TwelveBlocks(), "").value();
    std::array<std::vector<Choices>, 4> drawn;
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < drawn.size(); ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t seq = thread; seq < stream.size(); seq += drawn.size()) {
          drawn[thread].push_back(sampler->Draw(static_cast<std::int64_t>(seq)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t seq = 0; seq < stream.size(); ++seq) {
      ASSERT_EQ(drawn[seq % drawn.size()][seq / drawn.size()], stream[seq]) << "seq " << seq;
    }
  }
}

}  // namespace
}  // namespace verbatim
