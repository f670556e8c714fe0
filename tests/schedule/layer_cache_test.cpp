// A cache of layers: each of its rules by itself, random runs in which every access must find the
// right version, and the loads of one stage beside the fewest possible. By hand, any number of
// seeds:
//   VERBATIM_TEST_SEEDS=10000 build/dev/tests/schedule/schedule_test --gtest_filter='LayerCacheR*'
#include "schedule/layer_cache.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/schedule/cached_machine.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kLoad = Transfer::Kind::kLoad;
constexpr auto kWriteBack = Transfer::Kind::kWriteBack;

/// Two choice blocks of four linear layers and a skip; of 10 bytes each but stem and head, which
/// take none. Block 1 has layers 1 to 4 and the skip 5, block 2 has 6 to 9 and 10.
SearchSpace TwoBlocks(bool trainable = true) {
  Spec spec;
  spec.training.batch = 4;
  spec.supernet.stem.features = 4;
  spec.supernet.stem.candidates = {TestOperator(OperatorKind::kLinear)};
  BlockSpec block;
  block.repeat = 2;
  block.trainable = trainable;
  block.candidates.assign(4, TestOperator(OperatorKind::kLinear));
  block.candidates.push_back(TestOperator(OperatorKind::kSkip));
  spec.supernet.blocks = {block};
  spec.supernet.head.candidates = {TestOperator(OperatorKind::kClassifier)};
  return *SearchSpace::Build(spec, ActivationShape{1, 2, 2}, /*classes=*/3);
}

std::vector<LayerBytes> TenEach() {
  std::vector<LayerBytes> bytes(12);
  for (const int layer : {1, 2, 3, 4, 6, 7, 8, 9}) bytes[layer] = {6, 4};
  return bytes;
}

const StageRanges kOneStage({0, 4});
const StageRanges kApart({0, 2, 4});  // block 1 on stage 0, block 2 on stage 1
const StageRanges kBothOnFirst({0, 3, 4});
const StageRanges kBothOnLast({0, 1, 4});

class LayerCacheTest : public testing::Test {
 protected:
  void Make(int stages, std::int64_t budget, CachePolicy policy = CachePolicy::kLookAhead,
            bool trainable = true) {
    space_ = TwoBlocks(trainable);
    cache_.emplace(space_, TenEach(), stages, LayerCacheOptions{budget, policy});
  }
  void Foresee(std::int64_t seq, Choices choices, const StageRanges& ranges) {
    cache_->Foresee(seq, choices, ranges);
  }
  void Admit(std::int64_t seq) { cache_->Admit(seq, ready_); }
  void Add(std::int64_t seq, Choices choices, const StageRanges& ranges) {
    Foresee(seq, std::move(choices), ranges);
    Admit(seq);
  }
  void Finish(const Transfer& transfer) { cache_->Finished(transfer, ready_); }
  void Update(std::int64_t seq, int stage) { cache_->Updated({seq, stage}, ready_); }

  /// Layers that are copied one after another until nothing more is.
  std::vector<int> RunAll(int stage, Transfer::Kind kind) {
    std::vector<int> layers;
    while (const auto transfer = cache_->Next(stage, kind)) {
      layers.push_back(transfer->layer);
      Finish(*transfer);
    }
    return layers;
  }
  /// What has been handed out since the last call.
  std::vector<Residency> TakeReady() { return std::exchange(ready_, {}); }

  SearchSpace space_ = TwoBlocks();
  std::optional<LayerCache> cache_;
  std::vector<Residency> ready_;
};

TEST_F(LayerCacheTest, SetsMemoryAsideInOrder) {
  Make(1, 30);
  Add(0, {0, 0}, kOneStage);
  Add(1, {1, 1}, kOneStage);
  Add(2, {4, 2}, kOneStage);  // would fit, but 1 comes first
  EXPECT_TRUE(cache_->IsSetAside({0, 0}));
  EXPECT_FALSE(cache_->IsSetAside({1, 0}));
  EXPECT_FALSE(cache_->IsSetAside({2, 0}));
  RunAll(0, kLoad);
  Update(0, 0);
  EXPECT_TRUE(cache_->IsSetAside({1, 0}));
  EXPECT_TRUE(cache_->IsSetAside({2, 0}));
}

TEST_F(LayerCacheTest, SetsASharedLayerAsideOnce) {
  Make(1, 30);
  Add(0, {0, 0}, kOneStage);
  Add(1, {0, 1}, kOneStage);
  EXPECT_TRUE(cache_->IsSetAside({1, 0}));
}

TEST_F(LayerCacheTest, LoadsInTheOrderOfNeedAndAheadOfIt) {
  Make(1, 60);
  Add(0, {1, 1}, kOneStage);
  Foresee(1, {0, 1}, kOneStage);
  Foresee(2, {2, 0}, kOneStage);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(2, 7, 1, 3, 6));
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{0, 0}));
}

TEST_F(LayerCacheTest, LoadsAheadIntoNoRoomThatIsSetAside) {
  Make(1, 30);
  Add(0, {0, 0}, kOneStage);
  Foresee(1, {1, 1}, kOneStage);
  const auto first = cache_->Next(0, kLoad);
  ASSERT_TRUE(first);
  Finish(*first);
  EXPECT_EQ(cache_->HeldBytes(0), 10);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(6, 2)) << "layer 6 of subnet 0, and one ahead of need";
  EXPECT_EQ(cache_->HeldBytes(0), 30);
}

TEST_F(LayerCacheTest, GivesUpNothingThatIsNeededSooner) {
  Make(1, 40);
  Add(0, {0, 0}, kOneStage);
  Foresee(1, {1, 4}, kOneStage);
  Foresee(2, {0, 4}, kOneStage);
  Foresee(3, {2, 2}, kOneStage);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(1, 6, 2, 3));
  Update(0, 0);
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(1, 6));
  const auto load = cache_->Next(0, kLoad);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->layer, 8);
  EXPECT_THAT(load->dropped, ElementsAre(LayerCopy{0, 6})) << "never used again";
  Finish(*load);
  Foresee(4, {3, 3}, kOneStage);
  EXPECT_FALSE(cache_->Next(0, kLoad)) << "all that is there is needed before subnet 4";
}

/// Subnets 0 and 1 have used their layers; subnet 2 needs one more than there is room for.
class EvictionTest : public LayerCacheTest {
 protected:
  std::vector<LayerCopy> Dropped(CachePolicy policy) {
    Make(1, 40, policy);
    Add(0, {0, 0}, kOneStage);
    cache_->Want({0, 0});
    RunAll(0, kLoad);
    Update(0, 0);
    Foresee(1, {1, 1}, kOneStage);
    Foresee(2, {2, 4}, kOneStage);
    Foresee(3, {0, 0}, kOneStage);
    Foresee(4, {1, 4}, kOneStage);
    Admit(1);
    cache_->Want({1, 0});
    RunAll(0, kLoad);
    Update(1, 0);
    RunAll(0, kWriteBack);
    Admit(2);
    cache_->Want({2, 0});
    const auto load = cache_->Next(0, kLoad);
    EXPECT_TRUE(load && load->layer == 3);
    return load ? load->dropped : std::vector<LayerCopy>{};
  }
};

TEST_F(EvictionTest, GivesUpWhatIsUsedLast) {
  const auto unused = ElementsAre(LayerCopy{0, 7});  // by subnet 1, and never again
  EXPECT_THAT(Dropped(CachePolicy::kOnDemand), unused);
}

TEST_F(EvictionTest, GivesUpWhatWasUsedLeastRecently) {
  EXPECT_THAT(Dropped(CachePolicy::kLru), ElementsAre(LayerCopy{0, 1}));  // by subnet 0
}

TEST_F(LayerCacheTest, LoadsOnDemandOnlyWhatIsWanted) {
  Make(1, 80, CachePolicy::kOnDemand);
  Add(0, {0, 0}, kOneStage);
  Add(1, {1, 1}, kOneStage);
  EXPECT_FALSE(cache_->Next(0, kLoad));
  cache_->Want({1, 0});
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(2, 7));
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{1, 0}));
  EXPECT_EQ(cache_->statistics().misses, 2);
  EXPECT_EQ(cache_->statistics().hits, 0);
}

TEST_F(LayerCacheTest, CountsWhatIsInPlaceWhenWanted) {
  Make(1, 80);
  Add(0, {0, 0}, kOneStage);
  Finish(*cache_->Next(0, kLoad));
  cache_->Want({0, 0});
  EXPECT_EQ(cache_->statistics().hits, 1);
  EXPECT_EQ(cache_->statistics().misses, 1);
  EXPECT_EQ(cache_->statistics().HitRate(), 0.5);
}

TEST_F(LayerCacheTest, WritesBackAtOnce) {
  Make(1, 80);
  Add(0, {0, 0}, kOneStage);
  RunAll(0, kLoad);
  EXPECT_FALSE(cache_->Next(0, kWriteBack)) << "in use";
  Update(0, 0);
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(1, 6));
  EXPECT_EQ(cache_->statistics().bytes_written, 20);
  EXPECT_EQ(cache_->HeldBytes(0), 20) << "what is written back stays";
}

TEST_F(LayerCacheTest, KeepsWhatAnAdmittedSubnetUsesNext) {
  Make(1, 80);
  Add(0, {0, 0}, kOneStage);
  Add(1, {0, 1}, kOneStage);
  RunAll(0, kLoad);
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{0, 0})) << "subnet 1 follows subnet 0's update";
  Update(0, 0);
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{1, 0}));
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(6));
}

TEST_F(LayerCacheTest, WritesBackForRoomWhatALaterSubnetUses) {
  Make(1, 20);
  Add(0, {0, 0}, kOneStage);
  Add(1, {1, 1}, kOneStage);
  Add(2, {0, 0}, kOneStage);
  RunAll(0, kLoad);
  Update(0, 0);
  EXPECT_FALSE(cache_->Next(0, kLoad)) << "all that is there has changed";
  Finish(*cache_->Next(0, kWriteBack));
  const auto load = cache_->Next(0, kLoad);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->layer, 2);
  EXPECT_EQ(load->dropped.size(), 1U);
}

TEST_F(LayerCacheTest, MovesAnUpdatedLayerThroughHome) {
  Make(2, 40);
  Add(0, {0, 0}, kApart);
  Add(1, {0, 4}, kBothOnLast);
  RunAll(0, kLoad);
  EXPECT_THAT(RunAll(1, kLoad), ElementsAre(6)) << "layer 1 is subnet 0's";
  Update(0, 0);
  EXPECT_FALSE(cache_->Next(1, kLoad)) << "home has an older version";
  const auto written = cache_->Next(0, kWriteBack);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->layer, 1);
  EXPECT_FALSE(cache_->Next(1, kLoad)) << "on its way home";
  Finish(*written);
  const auto load = cache_->Next(1, kLoad);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->layer, 1);
  EXPECT_THAT(load->dropped, ElementsAre(LayerCopy{0, 1}));
  TakeReady();
  Finish(*load);
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{1, 1}));
}

TEST_F(LayerCacheTest, WhatIsUsedElsewhereLeavesFromHomeAndComesBackThere) {
  Make(2, 40);
  cache_.emplace(space_, TenEach(), 2, StagePart{0, 1}, LayerCacheOptions{.budget_bytes = 40});
  Add(0, {0, 0}, kApart);
  for (const std::int64_t seq : {1, 2}) Foresee(seq, {0, 4}, kBothOnLast);
  Foresee(3, {0, 0}, kApart);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(1)) << "layer 6 is the other process's";
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{0, 0}));
  Update(0, 0);
  EXPECT_FALSE(cache_->IsAtHome(1));
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(1));
  EXPECT_TRUE(cache_->IsAtHome(1));
  EXPECT_EQ(cache_->Left(1), (LayerCopy{0, 1}));
  EXPECT_EQ(cache_->HeldBytes(0), 0);
  for (const std::int64_t seq : {1, 2, 3}) Admit(seq);
  EXPECT_FALSE(cache_->Next(0, kLoad)) << "not here yet";
  EXPECT_FALSE(cache_->Arrived(1, 2)) << "subnet 2 uses it elsewhere";
  EXPECT_FALSE(cache_->Arrived(6, 3));
  EXPECT_TRUE(cache_->Arrived(1, 3));
  EXPECT_FALSE(cache_->Arrived(1, 3)) << "twice";
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(1));
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{1, 0}, Residency{2, 0}, Residency{3, 0}));
}

TEST_F(LayerCacheTest, WritesFirstWhatAnotherStageWaitsFor) {
  Make(2, 40);
  Add(0, {0, 0}, kBothOnFirst);
  Add(1, {4, 0}, kApart);
  RunAll(0, kLoad);
  Update(0, 0);
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(6, 1));
}

TEST_F(LayerCacheTest, NobodyBeginsDuringAWriteBack) {
  Make(1, 40);
  Add(0, {0, 4}, kOneStage);
  RunAll(0, kLoad);
  Update(0, 0);
  const auto written = cache_->Next(0, kWriteBack);
  ASSERT_TRUE(written);
  TakeReady();
  Add(1, {0, 4}, kOneStage);
  EXPECT_THAT(TakeReady(), IsEmpty());
  Finish(*written);
  EXPECT_THAT(TakeReady(), ElementsAre(Residency{1, 0}));
}

TEST_F(LayerCacheTest, CopiesWhatNobodyWritesToSeveralStages) {
  Make(2, 40, CachePolicy::kLookAhead, /*trainable=*/false);
  Add(0, {0, 0}, kApart);
  Add(1, {0, 0}, kBothOnLast);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(1));
  EXPECT_THAT(RunAll(1, kLoad), ElementsAre(6, 1));
  EXPECT_EQ(TakeReady().size(), 4U);
  Update(0, 0);
  Update(0, 1);
  EXPECT_FALSE(cache_->Next(0, kWriteBack));
  EXPECT_FALSE(cache_->Next(1, kWriteBack));
}

TEST_F(LayerCacheTest, SettlesWithEverythingAtHome) {
  Make(1, 80);
  Add(0, {0, 0}, kOneStage);
  Foresee(1, {0, 1}, kOneStage);
  RunAll(0, kLoad);
  Update(0, 0);
  cache_->Settle();
  EXPECT_FALSE(cache_->IsSettled());
  EXPECT_THAT(RunAll(0, kWriteBack), ElementsAre(1, 6));
  EXPECT_TRUE(cache_->IsSettled());
  EXPECT_EQ(cache_->DropAll().size(), 3U);
  EXPECT_FALSE(cache_->Next(0, kLoad)) << "settled";
  Admit(1);
  EXPECT_THAT(RunAll(0, kLoad), ElementsAre(1, 7)) << "and goes on";
}

TEST(DeviceMemoryTest, CountsWhatIsAlwaysThere) {
  const SearchSpace space = MakeTestSpace(2, 1, /*trained_ends=*/true, /*delay=*/3);
  std::vector<LayerBytes> bytes(space.layers().size(), LayerBytes{10, 7});
  // Positions 0 to 3; the middle ones may run on either stage. Skips have no versions.
  const std::int64_t layer = (3 + 2) * 10 + 7;
  EXPECT_EQ(PermanentBytes(space, bytes, 0, 2), 3 * layer);
  EXPECT_EQ(PermanentBytes(space, bytes, 1, 2), 3 * layer);
  EXPECT_EQ(PermanentBytes(space, bytes, 0, 4), layer);
}

TEST(DeviceMemoryTest, FindsTheDearestPart) {
  const SearchSpace space = TwoBlocks();
  LeastDeviceMemory least(space, TenEach(), 2);
  least.Add(Choices{0, 4}, kApart);
  EXPECT_EQ(least.bytes(), 10);
  least.Add(Choices{0, 0}, kBothOnLast);
  EXPECT_EQ(least.bytes(), 20);
  EXPECT_EQ(least.mean_bytes(), (10 + 0 + 0 + 20) / 4.0);
}

TEST(DeviceMemoryTest, KnowsItsPoliciesByName) {
  for (const std::string& name : CachePolicyNames())
    EXPECT_EQ(NameOf(*ParseCachePolicy(name)), name);
  const auto unknown = ParseCachePolicy("fifo");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
}

/// One stage, one subnet at a time, layers of one size: a stream of sets of layers.
struct OneStageStream {
  SearchSpace space = TwoBlocks();
  std::int64_t room = 0;  ///< layers
  std::vector<Choices> choices;

  /// As bits; a skip takes no room.
  std::uint32_t LayersOf(const Choices& subnet) const {
    std::uint32_t layers = 0;
    for (const int position : {1, 2}) {
      const Layer& layer = space.LayerAt(position, subnet);
      if (!layer.parameters.empty()) layers |= 1U << layer.id;
    }
    return layers;
  }
};

/// The fewest loads of any order of loading and giving up, by trying all: nothing is gained by
/// loading a layer before its subnet comes.
std::int64_t FewestLoads(const OneStageStream& stream) {
  std::map<std::uint32_t, std::int64_t> reached{{0, 0}};  // layers there: loads
  for (const Choices& choices : stream.choices) {
    const std::uint32_t needed = stream.LayersOf(choices);
    std::map<std::uint32_t, std::int64_t> next;
    for (const auto& [there, loads] : reached) {
      const std::uint32_t all = there | needed;
      // Every set between what is needed and what could be there.
      const std::uint32_t optional = all & ~needed;
      for (std::uint32_t kept = optional;; kept = (kept - 1) & optional) {
        if (std::popcount(kept | needed) <= stream.room) {
          const std::int64_t cost = loads + std::popcount(needed & ~there);
          const auto [known, is_new] = next.emplace(kept | needed, cost);
          if (!is_new) known->second = std::min(known->second, cost);
        }
        if (kept == 0) break;
      }
    }
    reached = std::move(next);
  }
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [there, loads] : reached) fewest = std::min(fewest, loads);
  return fewest;
}

std::int64_t LoadsOf(const OneStageStream& stream, CachePolicy policy) {
  std::vector<LayerBytes> bytes(stream.space.layers().size());
  for (const int layer : {1, 2, 3, 4, 6, 7, 8, 9}) bytes[layer] = {1, 0};
  LayerCache cache(stream.space, bytes, 1, {stream.room, policy});
  for (std::size_t seq = 0; seq < stream.choices.size(); ++seq) {
    cache.Foresee(static_cast<std::int64_t>(seq), stream.choices[seq], kOneStage);
  }
  for (std::int64_t seq = 0; seq < std::ssize(stream.choices); ++seq) {
    std::vector<Residency> ready;
    cache.Admit(seq, ready);
    cache.Want({seq, 0});
    for (const auto kind : {kWriteBack, kLoad}) {
      while (const auto transfer = cache.Next(0, kind)) cache.Finished(*transfer, ready);
    }
    EXPECT_THAT(ready, ElementsAre(Residency{seq, 0}));
    if (ready.empty()) break;
    cache.Updated({seq, 0}, ready);
  }
  return cache.statistics().loads;
}

TEST(BeladyTest, OnDemandLoadsAsLittleAsCanBe) {
  std::int64_t fewest_of_all = 0, ahead_of_all = 0, lru_of_all = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SeededDraws draws(seed);
    OneStageStream stream;
    stream.room = draws.Between(2, 6);
    for (int n = 0; n < 40; ++n) {
      const auto draw = [&] { return static_cast<std::uint16_t>(draws.Between(0, 4)); };
      stream.choices.push_back({draw(), draw()});
    }
    const std::int64_t fewest = FewestLoads(stream);
    ASSERT_EQ(LoadsOf(stream, CachePolicy::kOnDemand), fewest);
    const std::int64_t ahead = LoadsOf(stream, CachePolicy::kLookAhead);
    ASSERT_GE(ahead, fewest);
    fewest_of_all += fewest;
    ahead_of_all += ahead;
    lru_of_all += LoadsOf(stream, CachePolicy::kLru);
  }
  std::cout << "loads: fewest " << fewest_of_all << ", ahead of need " << ahead_of_all << ", lru "
            << lru_of_all << "\n";
  EXPECT_LT(ahead_of_all, lru_of_all);
}

std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

TEST(LayerCacheRandomTest, KeepsEveryPromise) {
  const bool is_one = std::getenv("VERBATIM_TEST_SEED") != nullptr;
  const std::uint64_t first = is_one ? Number("VERBATIM_TEST_SEED", 1) : 1;
  const std::uint64_t count = is_one ? 1 : Number("VERBATIM_TEST_SEEDS", 400);
  std::int64_t loads = 0, hits = 0, misses = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const CachedCase drawn = DrawCachedCase(seed);
    SCOPED_TRACE(
        fmt::format("{}\nrepeat: VERBATIM_TEST_SEED={} build/dev/tests/schedule/schedule_test "
                    "--gtest_filter=LayerCacheRandomTest.KeepsEveryPromise",
                    drawn.description, seed));
    CachedMachine machine(drawn);
    ASSERT_TRUE(machine.Run()) << "stuck after " << machine.finished();
    if (HasFailure()) return;
    loads += machine.statistics().loads;
    hits += machine.statistics().hits;
    misses += machine.statistics().misses;
  }
  std::cout << count << " runs: " << loads << " loads, " << hits << " hits, " << misses
            << " misses\n";
}

}  // namespace
}  // namespace verbatim
