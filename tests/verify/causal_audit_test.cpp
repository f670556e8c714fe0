// Proves that the audit finds every access that did not see its causal predecessor's version, and
// nothing else: on hand-made streams, and against a search that looks back over all subnets.
#include "verify/causal_audit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace verbatim {
namespace {

struct Use {
  std::int32_t layer;
  std::int64_t read;
  std::int64_t base;
};

SubnetRow Subnet(std::int64_t seq, const std::vector<Use>& uses) {
  SubnetRow row;
  row.seq = seq;
  for (const Use& use : uses) {
    AccessRow access;
    access.layer = use.layer;
    access.read_seq = use.read;
    access.base_seq = use.base;
    access.stage = use.layer % 2;
    row.accesses.push_back(access);
  }
  return row;
}

CausalAudit Audit(const std::vector<std::int64_t>& delays,
                  const std::vector<std::vector<Use>>& stream) {
  CausalAudit audit(delays);
  for (std::size_t seq = 0; seq < stream.size(); ++seq) {
    audit.Visit(Subnet(static_cast<std::int64_t>(seq), stream[seq]));
  }
  return audit;
}

TEST(CausalAudit, AcceptsACausalStream) {
  const CausalAudit audit = Audit(
      {0, 0, 0}, {{{0, -1, -1}, {1, -1, -1}}, {{0, 0, 0}, {2, -1, -1}}, {{0, 1, 1}, {1, 0, 0}}});
  EXPECT_EQ(audit.subnets(), 3);
  EXPECT_EQ(audit.accesses(), 6);
  EXPECT_EQ(audit.violations(), 0);
  EXPECT_EQ(audit.subnets_affected(), 0);
  EXPECT_FALSE(audit.first().has_value());
}

TEST(CausalAudit, AcceptsAnEmptyStream) {
  EXPECT_EQ(Audit({0, 3}, {}).violations(), 0);
  EXPECT_EQ(Audit({0, 3}, {{}, {}}).subnets(), 2);
}

TEST(CausalAudit, AcceptsLateReadsWhereALayerHasADelay) {
  // Layer 1 has delay 2: subnet j reads what subnets below j - 2 left, and updates the newest.
  const CausalAudit audit = Audit({0, 2}, {{{0, -1, -1}, {1, -1, -1}},
                                           {{1, -1, 0}},
                                           {{1, -1, 1}},
                                           {{0, 0, 0}, {1, 0, 2}},
                                           {},
                                           {{1, 2, 3}},
                                           {{1, 3, 5}},
                                           {{1, 3, 6}}});
  EXPECT_EQ(audit.violations(), 0);
  EXPECT_TRUE(audit.has_delays());
  EXPECT_FALSE(Audit({0, 0}, {}).has_delays());
}

TEST(CausalAudit, SaysWhichPredecessorAndWhichDelay) {
  const CausalAudit fresh = Audit({2}, {{{0, -1, -1}}, {{0, 0, 0}}});
  EXPECT_EQ(Describe(*fresh.first(), "stem"),
            "subnet 1 read stem at version 0 on stage 0; with delay 2 it has no read predecessor");
  const CausalAudit stale = Audit({1}, {{{0, -1, -1}}, {{0, -1, 0}}, {{0, -1, 1}}});
  EXPECT_EQ(Describe(*stale.first(), "stem"),
            "subnet 2 read stem at the initial weights on stage 0; with delay 1 its read "
            "predecessor is subnet 0");
  const CausalAudit base = Audit({1}, {{{0, -1, -1}}, {{0, -1, -1}}});
  EXPECT_EQ(Describe(*base.first(), "stem"),
            "subnet 1 updated stem at the initial weights on stage 0; its base predecessor is "
            "subnet 0");
}

struct Case {
  const char* name;
  std::vector<std::vector<Use>> stream;
  std::int64_t violations;
  std::int64_t affected;
  const char* message;
};

class CausalAuditViolation : public testing::TestWithParam<Case> {};

TEST_P(CausalAuditViolation, IsFoundAndDescribed) {
  const CausalAudit audit = Audit({0, 0, 0, 0}, GetParam().stream);
  EXPECT_EQ(audit.violations(), GetParam().violations);
  EXPECT_EQ(audit.subnets_affected(), GetParam().affected);
  ASSERT_TRUE(audit.first().has_value());
  EXPECT_EQ(Describe(*audit.first(), "block3.1"), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, CausalAuditViolation,
    testing::Values(
        Case{"StaleRead",
             {{{1, -1, -1}}, {{1, 0, 0}}, {{1, 0, 1}}},
             1,
             1,
             "subnet 2 read block3.1 at version 0 on stage 1; its causal predecessor is subnet 1"},
        Case{"StaleReadOfInitialWeights",
             {{{1, -1, -1}}, {{1, -1, 0}}},
             1,
             1,
             "subnet 1 read block3.1 at the initial weights on stage 1; its causal predecessor is "
             "subnet 0"},
        Case{"ReadOfALaterVersion",
             {{{1, 1, -1}}, {{1, 0, 0}}},
             1,
             1,
             "subnet 0 read block3.1 at version 1 on stage 1; it has no causal predecessor"},
        Case{"LostUpdate",
             {{{1, -1, -1}}, {{1, 0, -1}}},
             1,
             1,
             "subnet 1 updated block3.1 at the initial weights on stage 1; its causal predecessor "
             "is subnet 0"},
        Case{"ReadOfASubnetThatDoesNotUseTheLayer",
             {{{1, -1, -1}}, {{2, -1, -1}}, {{1, 1, 1}}},
             2,
             1,
             "subnet 2 read block3.1 at version 1 on stage 1; its causal predecessor is subnet 0"},
        Case{"LowestPositionFirst",
             {{{1, -1, -1}, {3, -1, -1}}, {{1, 0, -1}, {3, -1, 0}}},
             2,
             1,
             "subnet 1 updated block3.1 at the initial weights on stage 1; its causal predecessor "
             "is subnet 0"},
        Case{"LowestSubnetFirst",
             {{{2, -1, -1}}, {{2, 0, 5}}, {{2, 0, 0}}},
             3,
             2,
             "subnet 1 updated block3.1 at version 5 on stage 0; its causal predecessor is subnet "
             "0"}),
    [](const auto& test) { return test.param.name; });

/// The definition, word by word: the greatest earlier subnet that uses the layer.
std::int64_t PredecessorByDefinition(const std::vector<SubnetRow>& rows, std::size_t j,
                                     std::int32_t layer) {
  std::int64_t predecessor = -1;
  for (std::size_t i = 0; i < j; ++i) {
    for (const AccessRow& access : rows[i].accesses) {
      if (access.layer == layer) predecessor = rows[i].seq;
    }
  }
  return predecessor;
}

std::int64_t ReadByDefinition(const std::vector<SubnetRow>& rows, std::size_t j, std::int32_t layer,
                              const std::vector<std::int64_t>& delays) {
  const auto delay = static_cast<std::size_t>(delays[static_cast<std::size_t>(layer)]);
  return PredecessorByDefinition(rows, j > delay ? j - delay : 0, layer);
}

struct Found {
  std::int64_t violations = 0;
  std::int64_t affected = 0;
  std::int64_t first_seq = -1;
  std::int32_t first_layer = -1;
};

Found AuditByDefinition(const std::vector<SubnetRow>& rows,
                        const std::vector<std::int64_t>& delays) {
  Found found;
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const std::int64_t before = found.violations;
    for (const AccessRow& access : rows[j].accesses) {
      const std::int64_t read = ReadByDefinition(rows, j, access.layer, delays);
      const std::int64_t base = PredecessorByDefinition(rows, j, access.layer);
      const int wrong = (access.read_seq != read) + (access.base_seq != base);
      if (wrong > 0 && found.violations == 0) {
        found.first_seq = rows[j].seq;
        found.first_layer = access.layer;
      }
      found.violations += wrong;
    }
    found.affected += found.violations > before;
  }
  return found;
}

std::vector<SubnetRow> RandomStream(std::mt19937_64& random,
                                    const std::vector<std::int64_t>& delays,
                                    double violation_rate) {
  std::vector<SubnetRow> rows;
  std::uniform_real_distribution<double> chance(0.0, 1.0);
  const std::size_t subnets = 1 + random() % 40;
  for (std::size_t seq = 0; seq < subnets; ++seq) {
    rows.push_back(Subnet(static_cast<std::int64_t>(seq), {}));
    for (std::int32_t layer = 0; layer < std::ssize(delays); ++layer) {
      if (chance(random) < 0.6) continue;
      AccessRow access;
      access.layer = layer;
      access.read_seq = ReadByDefinition(rows, seq, layer, delays);
      access.base_seq = PredecessorByDefinition(rows, seq, layer);
      const auto any_version = [&] {
        return static_cast<std::int64_t>(random() % (subnets + 1)) - 1;
      };
      if (chance(random) < violation_rate) access.read_seq = any_version();
      if (chance(random) < violation_rate) access.base_seq = any_version();
      rows[seq].accesses.push_back(access);
    }
  }
  return rows;
}

TEST(CausalAudit, AgreesWithTheDefinitionOnRandomStreams) {
  const char* given = std::getenv("VERBATIM_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260131;
  SCOPED_TRACE("repeat with: VERBATIM_TEST_SEED=" + std::to_string(seed) +
               " verify_test --gtest_filter=CausalAudit.AgreesWithTheDefinitionOnRandomStreams");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> delays(1 + random() % 8);
    for (std::int64_t& delay : delays) {
      delay = static_cast<std::int64_t>(random() % 2 * (random() % 12));
    }
    const auto rows = RandomStream(random, delays, round % 3 * 0.05);
    CausalAudit audit(delays);
    for (const SubnetRow& row : rows) audit.Visit(row);
    const Found found = AuditByDefinition(rows, delays);
    ASSERT_EQ(audit.violations(), found.violations) << "round " << round;
    ASSERT_EQ(audit.subnets_affected(), found.affected) << "round " << round;
    ASSERT_EQ(audit.first().has_value(), found.violations > 0) << "round " << round;
    if (!audit.first()) continue;
    ASSERT_EQ(audit.first()->seq, found.first_seq) << "round " << round;
    ASSERT_EQ(audit.first()->layer, found.first_layer) << "round " << round;
  }
}

}  // namespace
}  // namespace verbatim
