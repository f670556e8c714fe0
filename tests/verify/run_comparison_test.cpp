// Proves that a comparison of two runs finds where differences begin and where they are passed on:
// against the causal graph, for computed runs, and case by case.
#include "verify/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/verify/computed_run.h"
#include "tests/verify/sample_run.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Result {
  Comparison comparison;
  std::vector<Difference> differences;  ///< one per subnet that differs
};

Result Compare(const LayerTable& table, const std::vector<SubnetRow>& a,
               const std::vector<SubnetRow>& b) {
  RunComparison comparison(table, std::ssize(a));
  Result result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (auto difference = comparison.Visit(a[i], b[i])) result.differences.push_back(*difference);
  }
  result.comparison = comparison.Finish();
  return result;
}

Result Compare(const std::vector<LayerRow>& layers, const std::vector<SubnetRow>& a,
               const std::vector<SubnetRow>& b) {
  return Compare(*LayerTable::Build(layers), a, b);
}

Result Compare(const ComputedRun& a, const ComputedRun& b) {
  LayerTable table = *LayerTable::Build(a.layers());
  table.ReadDelays(ComputedSpec(a.shape()));
  return Compare(table, a.subnets(), b.subnets());
}

std::set<std::int64_t> Expand(const std::vector<SeqRange>& ranges) {
  std::set<std::int64_t> seqs;
  for (const SeqRange& range : ranges) {
    for (std::int64_t seq = range.first; seq <= range.last; ++seq) seqs.insert(seq);
  }
  return seqs;
}

/// Subnets that a change of `layer` by subnet `origin` reaches in the causal graph. Who reads a
/// changed version changes all its layers, who only updates one changes that one.
std::set<std::int64_t> Reachable(const ComputedRun& run, std::int64_t origin, std::int32_t layer) {
  const std::vector<SubnetRow>& subnets = run.subnets();
  std::set<std::int64_t> reached;
  std::set<std::pair<std::int64_t, std::int32_t>> changed{{origin, layer}};
  for (std::int64_t seq = origin + 1; seq < std::ssize(subnets); ++seq) {
    const auto sees_change = [&](const AccessRow& access, std::int64_t delay) {
      const auto end = subnets.begin() + std::max<std::int64_t>(seq - delay, 0);
      const std::int64_t writer = CausalPredecessor({subnets.begin(), end}, access.layer);
      return changed.contains({writer, access.layer});
    };
    const std::vector<AccessRow>& accesses = subnets[seq].accesses;
    bool reads_change = false;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      reads_change |= sees_change(accesses[i], run.shape().DelayAt(static_cast<int>(i)));
    }
    for (const AccessRow& access : accesses) {
      if (!reads_change && !sees_change(access, 0)) continue;
      changed.insert({seq, access.layer});
      reached.insert(seq);
    }
  }
  return reached;
}

/// One bit of the weights that `access` of subnet `seq` leaves.
ComputedFault FlipBit(std::int64_t seq, std::size_t access) {
  return [=](bool after_update, const Computing& computing) {
    if (after_update && computing.row.seq == seq) computing.weights[access].bytes[5] ^= 4;
  };
}

TEST(RunComparison, FindsEqualRunsEqual) {
  for (const char* level : {"losses", "weights", "full"}) {
    const ComputedRun run({.level = level});
    const Comparison comparison = Compare(run, run).comparison;
    EXPECT_EQ(comparison.subnets_compared, 300);
    EXPECT_EQ(comparison.subnets_equal, 300);
    EXPECT_EQ(comparison.accesses_compared, 300 * 8);
    EXPECT_EQ(comparison.accesses_different, 0);
    EXPECT_EQ(comparison.origin_count + comparison.tainted_count, 0);
    EXPECT_THAT(comparison.layers, IsEmpty());
    EXPECT_THAT(comparison.map.cells, testing::Each(Equality::kEqual));
  }
}

TEST(RunComparison, OneBitTaintsWhatTheCausalGraphReaches) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int candidates : {2, 8, 40}) {
      SCOPED_TRACE(fmt::format("seed {}, {} candidates", seed, candidates));
      const ComputedShape shape{.candidates = candidates, .seed = seed};
      const std::size_t access = 1 + seed % 6;
      const ComputedRun a(shape), b(shape, FlipBit(150, access));
      const std::int32_t layer = a.subnets()[150].accesses[access].layer;
      const Comparison comparison = Compare(a, b).comparison;
      ASSERT_EQ(comparison.origins.size(), 1U);
      EXPECT_EQ(comparison.origin_count, 1);
      EXPECT_EQ(comparison.origins[0].seq, 150);
      EXPECT_EQ(comparison.origins[0].layer, layer);
      EXPECT_EQ(comparison.origins[0].phase, Phase::kUpdate);
      EXPECT_EQ(comparison.origins[0].kind, DifferenceClass::kComputation);
      const auto reachable = Reachable(a, 150, layer);
      EXPECT_EQ(Expand(comparison.tainted), reachable);
      EXPECT_EQ(comparison.tainted_count, std::ssize(reachable));
      EXPECT_EQ(comparison.subnets_equal, 300 - 1 - std::ssize(reachable));
      ASSERT_FALSE(comparison.layers.empty());
      EXPECT_EQ(comparison.layers[0].layer, layer);
      EXPECT_EQ(comparison.layers[0].first_seq, 150);
    }
  }
}

TEST(RunComparison, TaintFollowsVersionsReadLateAndUpdatesOfTheNewest) {
  const std::vector<std::int64_t> ends = {4, 0, 0, 0, 0, 0, 0, 4};
  const std::vector<std::int64_t> mixed = {9, 0, 30, 1, 0, 0, 200, 0};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const auto& delays : {ends, mixed}) {
      for (const std::size_t access : {0U, 2U, 4U, 7U}) {
        SCOPED_TRACE(fmt::format("seed {}, stem {}, access {}", seed, delays[0], access));
        const ComputedShape shape{.candidates = 8, .seed = seed, .delays = delays};
        const ComputedRun a(shape), b(shape, FlipBit(150, access));
        const std::int32_t layer = a.subnets()[150].accesses[access].layer;
        const Comparison comparison = Compare(a, b).comparison;
        EXPECT_EQ(Compare(a, a).comparison.subnets_equal, 300);
        ASSERT_EQ(comparison.origin_count, 1);
        EXPECT_EQ(comparison.origins[0].seq, 150);
        EXPECT_EQ(comparison.origins[0].layer, layer);
        EXPECT_EQ(Expand(comparison.tainted), Reachable(a, 150, layer));
      }
    }
  }
}

TEST(RunComparison, TellsAnUpdateOfAVersionThatDiffersFromAReadOfOne) {
  const ComputedShape shape{.subnets = 12, .delays = {3}};
  const ComputedRun a(shape), b(shape, FlipBit(4, 0));
  const Result result = Compare(a, b);
  ASSERT_EQ(std::ssize(result.differences), 8);
  EXPECT_EQ(result.differences[1].seq, 5);
  EXPECT_EQ(result.differences[1].what, "weights");
  EXPECT_EQ(result.differences[1].cause, "it updated stem, which differs since subnet 4");
  EXPECT_EQ(result.differences[4].seq, 8);
  EXPECT_EQ(result.differences[4].what, "loss");
  EXPECT_EQ(result.differences[4].cause, "it read stem, which differs since subnet 4");
}

TEST(RunComparison, WhatAnUpdatedVersionDoesNotExplainIsAnOrigin) {
  const ComputedShape shape{.subnets = 12, .level = "full", .delays = {3}};
  const ComputedRun a(shape);
  const auto compare = [&](const std::function<void(SubnetRow&)>& change) {
    ComputedRun b(shape, FlipBit(4, 0));
    change(b.subnets()[5]);  // its stem's base differs, nothing that it read does
    const Comparison comparison = Compare(a, b).comparison;
    VERBATIM_CHECK(comparison.origins.size() == 2 && comparison.origins[1].seq == 5);
    return comparison.origins[1];
  };
  EXPECT_EQ(compare([](SubnetRow& row) { row.loss_bits ^= 1; }).what, "loss");
  const Difference gradients =
      compare([](SubnetRow& row) { row.accesses[0].gradients->bytes[0] ^= 1; });
  EXPECT_EQ(gradients.what, "gradients");
  EXPECT_EQ(gradients.layer_name, "stem");
  const Difference update = compare([](SubnetRow& row) { row.accesses[2].weights->bytes[0] ^= 1; });
  EXPECT_EQ(update.what, "weights");
  EXPECT_EQ(update.layer, a.subnets()[5].accesses[2].layer);
}

TEST(RunComparison, KnowsWhichVersionADelayedLayerHadToSee) {
  const ComputedRun run({.subnets = 12, .delays = {3}});
  LayerTable table = *LayerTable::Build(run.layers());
  table.ReadDelays(ComputedSpec(run.shape()));
  const auto cause = [&](std::int64_t AccessRow::*version, std::int64_t seen) {
    std::vector<SubnetRow> b = run.subnets();
    b[8].accesses[0].*version = seen;
    return Compare(table, run.subnets(), b).differences.at(0).cause;
  };
  EXPECT_EQ(cause(&AccessRow::read_seq, 7),
            "the reference, on stage 0, did not read what its causal predecessor left (subnet 4)");
  EXPECT_EQ(cause(&AccessRow::base_seq, 4),
            "the reference, on stage 0, did not update what its causal predecessor left (subnet "
            "7)");
}

TEST(RunComparison, FindsAnOriginAmongTaintedSubnets) {
  const ComputedShape shape{.subnets = 60, .candidates = 40};
  const ComputedRun a(shape);
  const ComputedRun b(shape, [](bool after_update, const Computing& computing) {
    if (after_update && computing.row.seq == 20) computing.weights[3].bytes[0] ^= 1;
    if (!after_update && computing.row.seq == 40)
      std::swap(computing.row.samples[0], computing.row.samples[1]);
  });
  const Comparison comparison = Compare(a, b).comparison;
  ASSERT_EQ(comparison.origins.size(), 2U);
  EXPECT_EQ(comparison.origins[0].seq, 20);
  EXPECT_EQ(comparison.origins[1].seq, 40);
  EXPECT_EQ(comparison.origins[1].kind, DifferenceClass::kSampleOrder);
  EXPECT_FALSE(Expand(comparison.tainted).contains(40));
}

TEST(RunComparison, WithoutDigestsTaintFollowsTheGraphFromTheFirstSubnetThatDiffers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const ComputedShape shape{.candidates = 40, .seed = seed, .level = "losses"};
    const ComputedRun a(shape), b(shape, FlipBit(150, 2));
    const std::int32_t layer = a.subnets()[150].accesses[2].layer;
    auto reachable = Reachable(a, 150, layer);
    const Comparison comparison = Compare(a, b).comparison;
    if (reachable.empty()) {  // nobody reads the layer again
      EXPECT_EQ(comparison.subnets_equal, 300);
      continue;
    }
    // The update's bit shows first in the loss of the first subnet that reads it.
    const std::int64_t first = *reachable.begin();
    ASSERT_EQ(comparison.origin_count, 1);
    EXPECT_EQ(comparison.origins[0].seq, first);
    EXPECT_EQ(comparison.origins[0].what, "loss");
    EXPECT_THAT(comparison.origins[0].cause, HasSubstr("an earlier update"));
    reachable.erase(first);
    EXPECT_EQ(Expand(comparison.tainted), reachable);
  }
}

TEST(RunComparison, ComparesWhatRecordsOfDifferentLevelsBothHold) {
  for (const char* level : {"losses", "weights", "full"}) {
    for (const char* other : {"losses", "weights", "full"}) {
      SCOPED_TRACE(std::string(level) + " with " + other);
      const ComputedRun a({.level = level});
      EXPECT_EQ(Compare(a, ComputedRun({.level = other})).comparison.subnets_equal, 300);
      const ComputedRun b({.level = other}, FlipBit(150, 0));
      const Comparison comparison = Compare(a, b).comparison;
      const bool digests = level != std::string("losses") && other != std::string("losses");
      ASSERT_EQ(comparison.origin_count, 1);
      EXPECT_EQ(comparison.origins[0].seq, digests ? 150 : 151);
      EXPECT_EQ(comparison.tainted_count, digests ? 149 : 148);
    }
  }
}

TEST(RunComparison, ALayerHealsWhenItsDigestsAgreeAgain) {
  const ComputedRun a({.subnets = 30});
  std::vector<SubnetRow> b = a.subnets();
  b[10].accesses[0].weights->bytes[0] ^= 1;
  const Result once = Compare(a.layers(), a.subnets(), b);
  EXPECT_EQ(once.comparison.origin_count, 1);
  EXPECT_EQ(once.comparison.tainted_count, 0);  // subnet 11 read it and left what it had to
  b[12].loss_bits ^= 1;
  EXPECT_EQ(Compare(a.layers(), a.subnets(), b).comparison.origin_count, 2);
  b[11].accesses[0].weights->bytes[0] ^= 1;
  const Result longer = Compare(a.layers(), a.subnets(), b);
  EXPECT_EQ(longer.comparison.origin_count, 1);
  EXPECT_THAT(longer.comparison.tainted, ElementsAre(SeqRange{11, 12}));
}

TEST(RunComparison, InitialWeightsTaintTheirReaders) {
  const ComputedRun a({.subnets = 40});
  std::vector<LayerRow> layers = a.layers();
  layers[4].initial_digest.bytes[0] ^= 1;
  layers[5].initial_digest.bytes[0] ^= 1;
  const LayerTable table = *LayerTable::Build(a.layers());
  RunComparison comparison(table, 40);
  const auto difference = comparison.VisitLayers(layers);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->kind, DifferenceClass::kInitialWeights);
  EXPECT_EQ(difference->layer, 4);
  EXPECT_THAT(difference->cause, HasSubstr("and 1 more was too"));
  EXPECT_EQ(comparison.result().origin_count, 1);
  std::vector<SubnetRow> b = a.subnets();
  std::int64_t readers = 0;
  for (SubnetRow& row : b) {
    row.loss_bits ^= 1;  // all differ, but only the first reader of layer 4 or 5 is tainted
    if (readers == 0 && (row.accesses[1].layer == 4 || row.accesses[1].layer == 5)) {
      EXPECT_THAT(comparison.Visit(a.subnets()[row.seq], row)->cause,
                  HasSubstr("has differed from the start"));
      EXPECT_EQ(comparison.result().tainted_count, ++readers);
    } else if (readers == 0) {
      comparison.Visit(a.subnets()[row.seq], row);
      EXPECT_EQ(comparison.result().tainted_count, 0);
    }
  }
  EXPECT_EQ(readers, 1);
}

TEST(RunComparison, OtherChoicesAreOriginsAndChangeBothLayers) {
  const ComputedRun a({.subnets = 3}), b({.subnets = 3, .seed = 2});
  const Result result = Compare(a, b);
  EXPECT_EQ(result.comparison.origin_count, 3);
  EXPECT_EQ(result.comparison.origins[0].kind, DifferenceClass::kSpec);
  std::set<std::int32_t> used;
  for (const ComputedRun* run : {&a, &b}) {
    for (const SubnetRow& row : run->subnets()) {
      for (const AccessRow& access : row.accesses) used.insert(access.layer);
    }
  }
  std::set<std::int32_t> named;
  for (const LayerTaint& layer : result.comparison.layers) named.insert(layer.layer);
  EXPECT_EQ(named, used);
}

struct CauseCase {
  const char* name;
  std::function<void(SubnetRow& a, SubnetRow& b, const SubnetRow& before)> change;
  const char* what;
  const char* cause;
};

class RunComparisonCause : public testing::TestWithParam<CauseCase> {};

TEST_P(RunComparisonCause, SaysWhatTheDigestsTell) {
  const ComputedRun run({.subnets = 12});
  std::vector<SubnetRow> a = run.subnets(), b = run.subnets();
  GetParam().change(a[8], b[8], run.subnets()[7]);
  const Result result = Compare(run.layers(), a, b);
  ASSERT_FALSE(result.differences.empty());
  EXPECT_EQ(result.differences[0].seq, 8);
  EXPECT_EQ(result.differences[0].what, GetParam().what);
  EXPECT_THAT(result.differences[0].cause, HasSubstr(GetParam().cause));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RunComparisonCause,
    testing::Values(
        CauseCase{"LostInTheRecord",
                  [](SubnetRow& a, SubnetRow&, const SubnetRow& before) {
                    a.accesses[0].weights = before.accesses[0].weights;
                    a.accesses[0].optimizer_state = before.accesses[0].optimizer_state;
                  },
                  "weights",
                  "in the record the layer is as subnet 7 left it, as if the update had been lost"},
        CauseCase{"LostInTheReference",
                  [](SubnetRow&, SubnetRow& b, const SubnetRow& before) {
                    b.accesses[0].weights = before.accesses[0].weights;
                  },
                  "weights", "in the reference the layer is as subnet 7 left it"},
        CauseCase{"WeightsAlone",
                  [](SubnetRow& a, SubnetRow&, const SubnetRow&) {
                    a.accesses[3].weights->bytes[0] ^= 1;
                  },
                  "weights", "the weights alone are not"},
        CauseCase{"OptimizerStateAlone",
                  [](SubnetRow& a, SubnetRow&, const SubnetRow&) {
                    a.accesses[3].optimizer_state->bytes[0] ^= 1;
                  },
                  "optimizer state", "the weights after the update were equal"},
        CauseCase{"StaleRead",
                  [](SubnetRow& a, SubnetRow&, const SubnetRow&) {
                    a.accesses[0].read_seq = a.accesses[0].base_seq = 5;
                    a.accesses[0].stage = 2;
                  },
                  "version read",
                  "the record, on stage 2, did not read what its causal predecessor left (subnet "
                  "7)"},
        CauseCase{"StaleReadInTheReference",
                  [](SubnetRow&, SubnetRow& b, const SubnetRow&) { b.accesses[0].read_seq = 5; },
                  "version read", "the reference, on stage 0, did not read"},
        CauseCase{"StaleBase",
                  [](SubnetRow& a, SubnetRow&, const SubnetRow&) { a.accesses[0].base_seq = 5; },
                  "version updated", "the record, on stage 0, did not update what"}),
    [](const auto& test) { return test.param.name; });

TEST(RunComparison, ATaintedSubnetThatReadsAnotherVersionIsAnOrigin) {
  const ComputedRun a({.subnets = 30});
  ComputedRun b({.subnets = 30}, FlipBit(10, 0));
  b.subnets()[20].accesses[0].base_seq = 3;
  const Comparison comparison = Compare(a, b).comparison;
  ASSERT_EQ(comparison.origin_count, 2);
  EXPECT_EQ(comparison.origins[1].seq, 20);
  EXPECT_EQ(comparison.origins[1].what, "version updated");
  EXPECT_THAT(comparison.tainted, ElementsAre(SeqRange{11, 19}, SeqRange{21, 29}));
}

TEST(RunComparison, TheMapHoldsTheWorstOfEachColumn) {
  const ComputedShape shape{.subnets = 1000};
  const ComputedRun a(shape), b(shape, FlipBit(501, 4));
  const Comparison comparison = Compare(a, b).comparison;
  const EqualityMap& map = comparison.map;
  EXPECT_EQ(map.subnets_per_column, 4);
  EXPECT_EQ(map.columns(), 250);
  EXPECT_EQ(map.positions, 8);
  const auto column = [&](std::int64_t at) {
    const auto begin = map.cells.begin() + at * map.positions;
    return std::vector<Equality>(begin, begin + map.positions);
  };
  EXPECT_THAT(column(124), testing::Each(Equality::kEqual));
  EXPECT_EQ(column(501 / 4)[4], Equality::kOrigin);
  EXPECT_THAT(column(249), testing::Each(Equality::kTainted));
}

TEST(RunComparison, LeavesPositionsWithoutVersionedLayersOut) {
  const SampleRun sample = MakeSampleRun();
  const Comparison comparison = Compare(sample.layers, sample.subnets, sample.subnets).comparison;
  EXPECT_EQ(comparison.accesses_compared, CountAccesses(sample));
  for (const SubnetRow& row : sample.subnets) {
    for (std::size_t block = 0; block < row.choices.size(); ++block) {
      const bool is_skip = row.choices[block] == 2;
      const auto cell = static_cast<std::size_t>(row.seq) * 5 + block + 1;
      EXPECT_EQ(comparison.map.cells[cell], is_skip ? Equality::kNotCompared : Equality::kEqual);
    }
  }
}

TEST(RunComparison, KeepsTheFirstOriginsAndCountsAll) {
  const ComputedRun a({.subnets = 150});
  std::vector<SubnetRow> b = a.subnets();
  for (SubnetRow& row : b) row.batch_digest.bytes[0] ^= 1;
  const Comparison comparison = Compare(a.layers(), a.subnets(), b).comparison;
  EXPECT_EQ(comparison.origins.size(), kOriginsKept);
  EXPECT_EQ(comparison.origin_count, 150);
}

}  // namespace
}  // namespace verbatim
