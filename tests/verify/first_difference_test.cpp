// Proves that the first difference found through the trees is the one that a full comparison finds,
// and that no other subnet is read for it.
#include "verify/first_difference.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/verify/sample_run.h"
#include "verify/diff.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// Notes whose rows are read by FindFirstDifference; MemoryReader's trees need them all.
class WatchedReader : public SampleReader {
 public:
  using SampleReader::SampleReader;
  Result<std::optional<SubnetRow>> Subnet(std::int64_t seq,
                                          const ReadOptions& options) const override {
    read.insert(seq);
    return SampleReader::Subnet(seq, options);
  }
  mutable std::set<std::int64_t> read;
};

Result<Verdict> Find(const SampleRun& a, const SampleRun& b) {
  return FindFirstDifference(SampleReader(a), "a.db", SampleReader(b), "b.db");
}

SampleRun Changed(const std::function<void(SampleRun&)>& change) {
  SampleRun run = MakeSampleRun();
  change(run);
  Seal(run);
  return run;
}

TEST(FirstDifference, EqualRunsAreEqual) {
  SampleRun other = MakeSampleRun();
  other.run.stages = 3;
  const auto verdict = Find(MakeSampleRun(), other);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->exit_code(), 0);
  EXPECT_EQ(verdict->trees_compared, 12);
  EXPECT_EQ(verdict->layout_differences.size(), 1u);
  EXPECT_THAT(RenderText(*verdict),
              EndsWith("12 subnets compared by their trees: equal; no row was read\n"));
}

TEST(FirstDifference, IsThatOfAFullComparisonWhereverItLies) {
  const SampleRun a = MakeSampleRun();
  for (std::size_t seq = 0; seq < a.subnets.size(); ++seq) {
    const std::function<void(SubnetRow&)> changes[] = {
        [](SubnetRow& row) { row.loss_bits ^= 1; },
        [](SubnetRow& row) { row.accesses.back().weights->bytes[2] ^= 1; },
        [](SubnetRow& row) { row.accesses[0].optimizer_state->bytes[2] ^= 1; },
        [](SubnetRow& row) { row.batch_digest.bytes[0] ^= 1; },
        [](SubnetRow& row) { std::swap(row.samples[0], row.samples[1]); },
    };
    for (const auto& change : changes) {
      const SampleRun b = Changed([&](SampleRun& run) {
        change(run.subnets[seq]);
        run.subnets.back().loss_bits ^= 2;
      });
      const WatchedReader reader_a(a);
      const WatchedReader reader_b(b);
      const auto found = FindFirstDifference(reader_a, "a.db", reader_b, "b.db");
      const auto full = CompareRecords(reader_a, "a.db", reader_b, "b.db");
      ASSERT_TRUE(found && full);
      EXPECT_EQ(found->exit_code(), 1);
      ASSERT_TRUE(found->first_difference);
      EXPECT_EQ(found->first_difference->seq, static_cast<std::int64_t>(seq));
      EXPECT_EQ(PlaceText(*found->first_difference), PlaceText(*full->first_difference));
      EXPECT_EQ(found->first_difference->kind, full->first_difference->kind);
      EXPECT_EQ(found->first_difference->what, full->first_difference->what);
      EXPECT_EQ(found->first_difference->recorded, full->first_difference->recorded);
      EXPECT_EQ(reader_a.read, (std::set<std::int64_t>{static_cast<std::int64_t>(seq)}));
      EXPECT_EQ(reader_b.read, reader_a.read);
    }
  }
}

TEST(FirstDifference, LongerRunIsEqualInWhatBothHave) {
  SampleRun shorter = MakeSampleRun();
  shorter.subnets.resize(7);
  shorter.run.status = RunStatus::kInterrupted;
  const auto verdict = Find(MakeSampleRun(), shorter);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->exit_code(), 0);
  EXPECT_EQ(verdict->trees_compared, 7);
  EXPECT_THAT(RenderText(*verdict), HasSubstr("the first 7 subnets compared by their trees"));
}

TEST(FirstDifference, StartsComeBeforeSubnets) {
  const auto verdict = Find(MakeSampleRun(), Changed([](SampleRun& run) {
                              run.layers[2].initial_digest.bytes[0] ^= 1;
                              run.subnets[3].loss_bits ^= 1;
                            }));
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->first_difference->kind, DifferenceClass::kInitialWeights);
}

TEST(FirstDifference, BlamesTheEnvironment) {
  const auto verdict = Find(MakeSampleRun(), Changed([](SampleRun& run) {
                              run.environment[0].value = "Another CPU";
                              run.subnets[3].loss_bits ^= 1;
                            }));
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->first_difference->kind, DifferenceClass::kEnvironment);
  EXPECT_EQ(verdict->first_difference->seq, 3);
}

TEST(FirstDifference, RowThatDoesNotFitItsLeafIsDamage) {
  const SampleRun b = Changed([](SampleRun& run) { run.subnets[3].loss_bits ^= 1; });
  SampleRun damaged = b;
  damaged.subnets[3].loss_bits ^= 2;  // its leaf stays
  const auto verdict = Find(MakeSampleRun(), damaged);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->exit_code(), 3);
  EXPECT_THAT(RenderText(*verdict), HasSubstr("FAILED   record B"));
  EXPECT_THAT(RenderText(*verdict),
              HasSubstr("subnet 3: its row was changed after it was written"));
}

TEST(FirstDifference, LevelsMustBeEqual) {
  const auto verdict = Find(MakeSampleRun("full"), MakeSampleRun("weights"));
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(verdict.error().message,
              HasSubstr("A was recorded at level full, B at level weights"));
}

TEST(FirstDifference, NeedsASubnetInBoth) {
  SampleRun empty = MakeSampleRun();
  empty.subnets.clear();
  const auto verdict = Find(MakeSampleRun(), empty);
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("no subnet in common"));
}

}  // namespace
}  // namespace verbatim
