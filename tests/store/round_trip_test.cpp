// Proves that what is written is what is read, to the last field, and what SQL sees of it.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
using ::testing::ElementsAre;
using ::testing::IsEmpty;

void ExpectEqual(const SubnetRow& actual, const SubnetRow& expected) {
  SCOPED_TRACE(expected.seq);
  EXPECT_EQ(actual.seq, expected.seq);
  EXPECT_EQ(actual.choices, expected.choices);
  EXPECT_EQ(actual.samples, expected.samples);
  EXPECT_EQ(actual.batch_digest, expected.batch_digest);
  EXPECT_EQ(actual.loss_bits, expected.loss_bits);
  EXPECT_EQ(actual.content_leaf, expected.content_leaf);
  EXPECT_EQ(actual.layout_leaf, expected.layout_leaf);
  EXPECT_EQ(actual.activations, expected.activations);
  ASSERT_EQ(actual.accesses.size(), expected.accesses.size());
  for (std::size_t i = 0; i < expected.accesses.size(); ++i) {
    const AccessRow &a = actual.accesses[i], &e = expected.accesses[i];
    EXPECT_EQ(std::tie(a.layer, a.read_seq, a.base_seq, a.stage, a.weights, a.optimizer_state,
                       a.gradients),
              std::tie(e.layer, e.read_seq, e.base_seq, e.stage, e.weights, e.optimizer_state,
                       e.gradients));
  }
  ASSERT_EQ(actual.activities.size(), expected.activities.size());
  for (std::size_t i = 0; i < expected.activities.size(); ++i) {
    const ActivityRow &a = actual.activities[i], &e = expected.activities[i];
    EXPECT_EQ(std::tie(a.stage, a.microbatch, a.phase, a.begin_ns, a.end_ns),
              std::tie(e.stage, e.microbatch, e.phase, e.begin_ns, e.end_ns));
  }
}

class RoundTripTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordReader> Open() {
    auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return reader ? *std::move(reader) : nullptr;
  }
  // All rows of a query, columns joined by "|".
  std::vector<std::string> Query(const std::string& sql) {
    SQLite::Database database(path_.string(), SQLite::OPEN_READONLY);
    SQLite::Statement statement(database, sql);
    std::vector<std::string> rows;
    while (statement.executeStep()) {
      std::string row;
      for (int i = 0; i < statement.getColumnCount(); ++i) {
        if (i > 0) row += '|';
        row += statement.getColumn(i).getString();
      }
      rows.push_back(row);
    }
    return rows;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "run.db";
};

TEST_F(RoundTripTest, HeadRows) {
  WriteSample(path_, {});
  const auto reader = Open();
  const auto run = reader->Run();
  ASSERT_TRUE(run);
  const RunInfo expected = SampleRun();
  EXPECT_EQ(run->tool_version, expected.tool_version);
  EXPECT_EQ(run->spec_json, expected.spec_json);
  EXPECT_EQ(run->spec_folder, expected.spec_folder);
  EXPECT_EQ(run->command_line, expected.command_line);
  EXPECT_EQ(run->policy, expected.policy);
  EXPECT_EQ(run->record_level, expected.record_level);
  EXPECT_EQ(run->device, expected.device);
  EXPECT_EQ(run->stages, expected.stages);
  EXPECT_EQ(run->in_flight, expected.in_flight);
  EXPECT_EQ(run->partition, expected.partition);
  EXPECT_EQ(run->subnets_planned, expected.subnets_planned);
  EXPECT_EQ(run->dataset_digest, expected.dataset_digest);
  EXPECT_EQ(run->started_utc, expected.started_utc);
  EXPECT_EQ(reader->Environment(), SampleEnvironment());
  EXPECT_EQ(reader->Layers(), SampleLayers());
  EXPECT_EQ(reader->Evaluations(), (std::vector<EvaluationRow>{{0, {1, 2}, 90, 100}}));
}

TEST_F(RoundTripTest, EndOfRun) {
  for (const RunStatus status :
       {RunStatus::kComplete, RunStatus::kInterrupted, RunStatus::kFailed}) {
    const auto writer = CreateSample(path_, true);
    {
      const auto run = Open()->Run();
      EXPECT_EQ(run->status, RunStatus::kRunning);
      EXPECT_EQ(run->ended_utc, "");
    }
    ASSERT_TRUE(writer->Close(status, "why"));
    const auto run = Open()->Run();
    EXPECT_EQ(run->status, status);
    EXPECT_EQ(run->status_detail, "why");
    EXPECT_THAT(run->ended_utc,
                ::testing::MatchesRegex("20[0-9-]+T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z"));
  }
}

// 40 accesses go through both the grouped and the single statement.
TEST_F(RoundTripTest, SubnetsWithEverything) {
  std::vector<SubnetRow> subnets = SampleSubnets(5);
  subnets.push_back(SampleSubnet(kSeqMax, kSampleLayers));
  subnets.push_back(SubnetRow{.seq = 7});
  WriteSample(path_, subnets);
  std::sort(subnets.begin(), subnets.end(), [](auto& a, auto& b) { return a.seq < b.seq; });
  const auto reader = Open();
  EXPECT_EQ(reader->SubnetCount(), 7);
  EXPECT_EQ(reader->AccessCount(), 5 * 3 + kSampleLayers);
  const auto read = ReadSubnets(*reader);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), subnets.size());
  for (std::size_t i = 0; i < subnets.size(); ++i) ExpectEqual((*read)[i], subnets[i]);
  EXPECT_THAT(*reader->IntegrityProblems(), IsEmpty());
}

TEST_F(RoundTripTest, BatchesInAnyOrderAreReadInOrder) {
  const auto writer = CreateSample(path_);
  for (const std::int64_t seq : {3, 0, 2, 1}) {
    ASSERT_TRUE(writer->WriteSubnets(std::vector{SampleSubnet(seq)}));
  }
  const auto reader = Open();
  const auto read = ReadSubnets(*reader);
  ASSERT_TRUE(read);
  for (int seq = 0; seq < 4; ++seq) ExpectEqual(read->at(seq), SampleSubnet(seq));
}

TEST_F(RoundTripTest, OneSubnet) {
  WriteSample(path_, SampleSubnets(5));
  const auto reader = Open();
  ExpectEqual(reader->Subnet(3, {true, true, true})->value(), SampleSubnet(3));
  for (const std::int64_t seq : {std::int64_t{-1}, std::int64_t{5}, kSeqMax, kSeqMax + 1}) {
    EXPECT_FALSE(reader->Subnet(seq, {})->has_value()) << seq;
  }
}

TEST_F(RoundTripTest, OnlyWhatIsAskedForIsRead) {
  WriteSample(path_, SampleSubnets(2));
  const auto subnet = (*Open()->Subnet(1, {.accesses = false}))->seq;
  EXPECT_EQ(subnet, 1);
  const auto bare = Open()->Subnet(1, {false, false, false})->value();
  EXPECT_THAT(bare.accesses, IsEmpty());
  EXPECT_THAT(bare.activations, IsEmpty());
  EXPECT_THAT(bare.activities, IsEmpty());
}

TEST_F(RoundTripTest, VisitorStopsEarly) {
  WriteSample(path_, SampleSubnets(5));
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(Open()->ForEachSubnet({}, [&](const SubnetRow& subnet) {
    seen.push_back(subnet.seq);
    return subnet.seq < 2;
  }));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST_F(RoundTripTest, CursorWalksAllSubnetsAndStaysAtTheEnd) {
  const std::vector<SubnetRow> subnets = {SampleSubnet(0, 20), SampleSubnet(1, 0),
                                          SampleSubnet(3, 2)};
  WriteSample(path_, subnets);
  const auto reader = Open();
  const auto cursor = reader->Subnets({true, true, true});
  ASSERT_TRUE(cursor);
  for (const SubnetRow& expected : subnets) {
    const auto row = (*cursor)->Next();
    ASSERT_TRUE(row && *row != nullptr);
    ExpectEqual(**row, expected);
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ((*cursor)->Next(), nullptr);
}

TEST_F(RoundTripTest, VisitorMayAskTheReader) {
  WriteSample(path_, SampleSubnets(3));
  const auto reader = Open();
  int found = 0;
  ASSERT_TRUE(reader->ForEachSubnet({}, [&](const SubnetRow& subnet) {
    found += reader->Subnet(2 - subnet.seq, {})->has_value() ? 1 : 0;
    return true;
  }));
  EXPECT_EQ(found, 3);
}

TEST_F(RoundTripTest, LineageOfALayer) {
  std::vector<SubnetRow> subnets = SampleSubnets(6);
  subnets[3].accesses.erase(subnets[3].accesses.begin() + 1);
  WriteSample(path_, subnets);
  const auto reader = Open();
  const auto lineage = reader->Lineage(1);
  ASSERT_TRUE(lineage);
  std::vector<std::int64_t> seqs;
  for (const LineageRow& row : *lineage) {
    seqs.push_back(row.seq);
    EXPECT_EQ(row.access.layer, 1);
    EXPECT_EQ(row.access.weights, SampleDigest(51));
  }
  EXPECT_THAT(seqs, ElementsAre(0, 1, 2, 4, 5));
  for (const std::int32_t other : {-1, 20, 1 << 20, 2147483647}) {
    EXPECT_THAT(*reader->Lineage(other), IsEmpty()) << other;
  }
}

TEST_F(RoundTripTest, LossView) {
  const std::vector<float> losses = {0.0f,          -0.0f,
                                     1.5f,          -2.302585f,
                                     1e-45f,        1.17549435e-38f,
                                     3.4028235e38f, 1e-40f,
                                     -1e20f,        std::numeric_limits<float>::infinity()};
  std::vector<SubnetRow> subnets;
  for (const float loss : losses) {
    subnets.push_back({.seq = static_cast<std::int64_t>(subnets.size()),
                       .loss_bits = std::bit_cast<std::uint32_t>(loss)});
  }
  subnets.push_back({.seq = 99, .loss_bits = 0xffc00001});
  WriteSample(path_, subnets);
  SQLite::Database database(path_.string(), SQLite::OPEN_READONLY);
  SQLite::Statement select(database, "SELECT loss FROM subnet_losses ORDER BY seq");
  for (const float loss : losses) {
    ASSERT_TRUE(select.executeStep());
    EXPECT_EQ(select.getColumn(0).getDouble(), static_cast<double>(loss));
  }
  ASSERT_TRUE(select.executeStep());
  EXPECT_EQ(select.getColumn(0).getString(), "NaN");
  EXPECT_EQ((*Open()->Subnet(99, {}))->loss_bits, 0xffc00001u);
}

TEST_F(RoundTripTest, OtherViews) {
  WriteSample(path_, SampleSubnets(2));
  EXPECT_THAT(Query("SELECT place, sample FROM subnet_samples WHERE seq = 1 ORDER BY place"),
              ElementsAre("0|0", "1|4294967295", "2|1", "3|256"));
  EXPECT_THAT(Query("SELECT seq, read_seq, base_seq, weights FROM lineage"
                    " WHERE name = 'block0.1' ORDER BY seq"),
              ElementsAre("0|-1|-1|333435363738393a3b3c3d3e3f404142",
                          "1|0|-1|333435363738393a3b3c3d3e3f404142"));
  EXPECT_THAT(
      Query("SELECT stage, microbatch, phase, begin_ns, end_ns FROM timeline"
            " WHERE seq = 0 ORDER BY stage, microbatch"),
      ElementsAre("0|0|forward|1000|2500", "0|1|backward|3000000000|3000000001", "2|0|update|5|5"));
  EXPECT_THAT(Query("SELECT seq, value FROM subnets, json_each(choices) WHERE seq = 1"),
              ElementsAre("1|0", "1|65535", "1|1"));
}

TEST_F(RoundTripTest, FileIsMarked) {
  WriteSample(path_, SampleSubnets(1));
  EXPECT_THAT(Query("PRAGMA application_id"), ElementsAre("1447187533"));
  EXPECT_THAT(Query("PRAGMA user_version"), ElementsAre("4"));
  EXPECT_THAT(Query("PRAGMA journal_mode"), ElementsAre("delete"));
}

}  // namespace
}  // namespace verbatim
