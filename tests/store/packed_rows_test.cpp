// Proves that packed columns hold every value, in the bytes that docs/format.md states, and that a
// decoder takes nothing else.
#include "store/packed_rows.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/hex.h"
#include "store/format.h"
#include "store/packed_format.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
using ::testing::HasSubstr;

std::string Hex(const std::string& bytes) {
  return BytesToHex(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

std::string FromHex(const std::string& hex) {
  std::vector<std::uint8_t> bytes(hex.size() / 2);
  EXPECT_TRUE(BytesFromHex(hex, bytes));
  return {bytes.begin(), bytes.end()};
}

std::string AccessesProblem(std::int64_t seq, const std::string& bytes) {
  std::vector<AccessRow> rows;
  return UnpackAccesses(seq, bytes, rows).value_or("");
}

std::string ActivityProblem(const std::string& bytes) {
  std::vector<ActivityRow> rows;
  return UnpackActivity(bytes, rows).value_or("");
}

void ExpectRoundTrip(std::int64_t seq, const std::vector<AccessRow>& rows) {
  std::vector<AccessRow> read;
  EXPECT_EQ(UnpackAccesses(seq, PackAccesses(seq, rows), read), std::nullopt);
  EXPECT_EQ(read, rows);
}

void ExpectRoundTrip(const std::vector<ActivityRow>& rows, std::uint8_t format) {
  const auto packed = PackActivity(rows);
  ASSERT_TRUE(packed);
  EXPECT_EQ((*packed)[8], static_cast<char>(format));
  std::vector<ActivityRow> read;
  EXPECT_EQ(UnpackActivity(*packed, read), std::nullopt);
  EXPECT_EQ(read, rows);
}

// Written by hand from docs/format.md.
TEST(PackedAccesses, Bytes) {
  EXPECT_EQ(Hex(PackAccesses(7, SampleSubnet(1, 2).accesses)),
            "0f"  // base, weights, optimizer state, gradients
            "000000"
            "0000"
            "07"
            "07000000"
            "07000000"
            "32333435363738393a3b3c3d3e3f4041"
            "3c3d3e3f404142434445464748494a4b"
            "464748494a4b4c4d4e4f505152535455"
            "010000"
            "0100"
            "03"
            "07000000"
            "08000000"
            "333435363738393a3b3c3d3e3f404142"
            "3d3e3f404142434445464748494a4b4c"
            "00000000000000000000000000000000");
  EXPECT_EQ(Hex(PackAccesses(7, {})), "00");
}

TEST(PackedAccesses, HoldEveryValue) {
  ExpectRoundTrip(0, {});
  ExpectRoundTrip(3, SampleSubnet(3, kSampleLayers).accesses);
  ExpectRoundTrip(kSeqMax, {{.layer = 0, .read_seq = -1, .base_seq = kSeqMax}});
  ExpectRoundTrip(0, {{.layer = 0, .read_seq = kSeqMax, .base_seq = kSeqMax}});
  ExpectRoundTrip(5, {{.layer = kLayersMax - 1, .read_seq = 9, .base_seq = 9, .stage = kStageMax}});
  constexpr std::int64_t kEdge = std::int64_t{1} << 31;
  for (const std::int64_t distance : {kEdge - 1, kEdge, -kEdge, -kEdge - 1}) {
    const std::int64_t seq = 2 * kEdge;
    ExpectRoundTrip(seq, {{.layer = 1, .read_seq = seq - distance, .base_seq = seq - distance}});
  }
}

TEST(PackedAccesses, RefuseWhatNoEncoderWrites) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "holds no list of accesses in its 0 bytes"},
      {"20", "holds no list of accesses"},
      {"0000", "holds no list of accesses in its 2 bytes"},
      {"01", "is not the shortest form"},
      {"10", "is not the shortest form"},
      // A base that is the version read; a column that nothing is in; needless wide distances.
      {"01000000000000"
       "01000000"
       "01000000",
       "is not the shortest form"},
      {"02000000000000"
       "01000000"
       "00000000000000000000000000000000",
       "is not the shortest form"},
      {"10000000000000"
       "0100000000000000",
       "is not the shortest form"},
      {"00000010000000"
       "01000000",
       "access 0: layer is 1048576"},
      {"00050000000000"
       "01000000"
       "050000000000"
       "01000000",
       "access 1: layer is 5, after 5"},
      {"00000000000008"
       "01000000",
       "access 0: present is 8"},
      {"00000000000001"
       "01000000",
       "access 0: digests are not those said to be present"},
      {"02000000000000"
       "01000000"
       "00000000000000000000000000000001",
       "access 0: digests are not those"},
      {"00000000000000"
       "05000000",
       "access 0: read_seq is -2"},
      {"01000000000000"
       "01000000"
       "05000000",
       "access 0: base_seq is -2"},
      {"10000000000000"
       "0000000000000080",
       "access 0: read_seq is -9223372036854775805"},
  };
  for (const auto& [hex, problem] : cases) {
    EXPECT_THAT(AccessesProblem(3, FromHex(hex)), HasSubstr(problem)) << hex;
  }
}

TEST(PackedAccesses, EveryLengthAndFlipIsReadAsItIsWritten) {
  const std::string sound = PackAccesses(2, SampleSubnet(2, 4).accesses);
  for (std::size_t length = 0; length < sound.size(); ++length) {
    std::vector<AccessRow> rows;
    const std::string cut = sound.substr(0, length);
    if (!UnpackAccesses(2, cut, rows)) {
      EXPECT_EQ(PackAccesses(2, rows), cut) << length;
    }
  }
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    std::vector<AccessRow> rows;
    if (!UnpackAccesses(2, flipped, rows)) {
      EXPECT_EQ(PackAccesses(2, rows), flipped) << bit;
    }
  }
}

TEST(PackedActivity, Bytes) {
  EXPECT_EQ(Hex(*PackActivity(SampleSubnet(1).activities)),
            "0500000000000000"
            "00"
            "000000"
            "e3030000"
            "dc050000"
            "000101"
            "fb5dd0b2"
            "01000000"
            "020002"
            "00000000"
            "00000000");
  EXPECT_EQ(PackActivity({}), std::nullopt);
}

TEST(PackedActivity, HoldsEveryValue) {
  ExpectRoundTrip(SampleSubnet(1).activities, kNarrowTasks);
  constexpr std::int64_t kUint32Max = std::numeric_limits<std::uint32_t>::max();
  ExpectRoundTrip(
      {{0, 0, Phase::kForward, 0, 0}, {255, 255, Phase::kUpdate, kUint32Max, 2 * kUint32Max}},
      kNarrowTasks);
  const std::vector<ActivityRow> wide[] = {
      {{256, 0, Phase::kForward, 0, 0}},
      {{0, 256, Phase::kForward, 0, 0}},
      {{0, 0, Phase::kForward, 0, 0}, {0, 0, Phase::kForward, kUint32Max + 1, kUint32Max + 1}},
      {{0, 0, Phase::kForward, 0, kUint32Max + 1}},
      {{0, 0, Phase::kForward, 5, 4}},
      {{0, 0, Phase::kForward, -kTimeMaxNs, 0}, {0, 0, Phase::kForward, kTimeMaxNs, kTimeMaxNs}},
      {{2147483647, 2147483647, Phase::kUpdate, kTimeMaxNs, 0}},
  };
  for (const auto& rows : wide) ExpectRoundTrip(rows, kWideTasks);
}

TEST(PackedActivity, RefusesWhatNoEncoderWrites) {
  const std::string base = "0000000000000000";
  const std::pair<std::string, const char*> cases[] = {
      {"", "holds no list of tasks in its 0 bytes"},
      {base + "00", "holds no list of tasks in its 9 bytes"},
      {base + "02"
              "000000"
              "00000000"
              "00000000",
       "holds no list of tasks"},
      {base + "00"
              "000000"
              "00000000"
              "000000",
       "holds no list of tasks"},
      {"0100000000000010"
       "00"
       "000000"
       "00000000"
       "00000000",
       "holds no list of tasks"},
      {base + "00"
              "000003"
              "00000000"
              "00000000",
       "task 0: phase is 3"},
      {base + "00"
              "000000"
              "01000000"
              "00000000",
       "is not the shortest form"},
      {base + "01"
              "00000000"
              "00000000"
              "00"
              "0000000000000000"
              "0100000000000000",
       "is not the shortest form"},
      {base + "00"
              "000000"
              "00000000"
              "00000000"
              "000000"
              "00000000"
              "00000000",
       "does not ascend"},
      {base + "01"
              "00000080"
              "00000000"
              "00"
              "0000000000000000"
              "0100000000000000",
       "stage is"},
      {base + "01"
              "00000000"
              "00000080"
              "00"
              "0000000000000000"
              "0100000000000000",
       "microbatch is"},
      {base + "01"
              "00010000"
              "00000000"
              "00"
              "0100000000000010"
              "0100000000000000",
       "begin_ns is more than 1152921504606846977 after 0"},
      {base + "01"
              "00010000"
              "00000000"
              "00"
              "0000000000000000"
              "0100000000000010",
       "duration_ns is 1152921504606846977"},
  };
  for (const auto& [hex, problem] : cases) {
    EXPECT_THAT(ActivityProblem(FromHex(hex)), HasSubstr(problem)) << hex;
  }
}

TEST(PackedActivity, EveryFlipIsReadAsItIsWritten) {
  std::vector<ActivityRow> wide = SampleSubnet(1).activities;
  wide[2].stage = 300;
  for (const auto& tasks : {SampleSubnet(1).activities, wide}) {
    const std::string sound = *PackActivity(tasks);
    for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
      std::string flipped = sound;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      std::vector<ActivityRow> rows;
      if (!UnpackActivity(flipped, rows)) {
        EXPECT_EQ(*PackActivity(rows), flipped) << bit;
      }
    }
  }
}

TEST(PackedActivations, RoundTripAndRefusals) {
  const std::vector<ActivationRow> rows = SampleSubnet(1).activations;
  const auto packed = PackActivations(rows);
  ASSERT_TRUE(packed);
  EXPECT_EQ(Hex(*packed),
            "0000000000000000505152535455565758595a5b5c5d5e5f"
            "01000000000000005152535455565758595a5b5c5d5e5f60");
  std::vector<ActivationRow> read;
  EXPECT_EQ(UnpackActivations(*packed, read), std::nullopt);
  EXPECT_EQ(read, rows);
  EXPECT_EQ(PackActivations({}), std::nullopt);
  const auto problem = [&](const std::string& bytes) {
    return UnpackActivations(bytes, read).value_or("");
  };
  EXPECT_THAT(problem(""), HasSubstr("holds no list of activations in its 0 bytes"));
  EXPECT_THAT(problem(packed->substr(1)), HasSubstr("in its 47 bytes"));
  EXPECT_EQ(problem(packed->substr(24) + packed->substr(0, 24)), "does not ascend");
  std::string negative = *packed;
  negative[3] = static_cast<char>(0x80);
  EXPECT_EQ(problem(negative), "activation 0: microbatch is 2147483648");
  negative = *packed;
  negative[31] = static_cast<char>(0x80);
  EXPECT_EQ(problem(negative), "activation 1: position is 2147483648");
}

TEST(PackedManifest, RoundTripAndRefusals) {
  const std::vector<CheckpointLayer> layers = {{-1, SampleHash(1)}, {kSeqMax, SampleHash(200)}};
  const std::string packed = PackManifest(layers);
  EXPECT_EQ(Hex(packed.substr(0, 10)), "ffffffffffffffff0102");
  std::vector<CheckpointLayer> read;
  EXPECT_EQ(UnpackManifest(packed, read), std::nullopt);
  EXPECT_EQ(read, layers);
  EXPECT_EQ(UnpackManifest("", read), std::nullopt);
  EXPECT_THAT(*UnpackManifest(packed.substr(1), read), HasSubstr("in its 79 bytes"));
  std::string low = packed;
  low[0] = static_cast<char>(0xfe);
  EXPECT_EQ(*UnpackManifest(low, read), "layer 0: version is -2");
}

using PackedRowsDeathTest = ::testing::Test;

TEST(PackedRowsDeathTest, RowsThatNoRecordHolds) {
  EXPECT_DEATH(PackAccesses(1, std::vector<AccessRow>{{.layer = 2}, {.layer = 2}}), "layer 2");
  EXPECT_DEATH(PackAccesses(1, std::vector<AccessRow>{{.stage = kStageMax + 1}}), "stage 65536");
  EXPECT_DEATH(PackAccesses(1, std::vector<AccessRow>{{.read_seq = -2}}), "version -2");
  EXPECT_DEATH(PackActivity(std::vector<ActivityRow>{{.stage = -1}}), "task on stage -1");
}

}  // namespace
}  // namespace verbatim
