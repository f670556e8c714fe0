// Pins the content digest's bytes, and proves what changes it and what does not.
#include "recorder/content_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "recorder/digest.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
  return hex;
}

Hash256 DigestOf(const std::vector<SubnetRow>& subnets) {
  TemporaryFolder folder;
  WriteSample(folder / "run.db", subnets);
  auto reader = RecordReader::Open(folder / "run.db");
  return ContentDigest(**reader).value();
}

// Written by hand from docs/format.md.
TEST(ContentDigestTest, AStepFollowsItsSubnetsBytes) {
  SubnetRow row = SampleSubnet(1);
  const std::string subnet = Hex(EncodeSubnetContent(row));
  row.step.emplace();
  row.step->step = 300;
  row.step->outside = {7};
  EXPECT_EQ(Hex(EncodeSubnetContent(row)), subnet +
                                               "2c01000000000000"  // step
                                               "0f000000"          // facts
                                               "7b226f757473696465223a5b375d7d");
}

// Written by hand from docs/format.md.
TEST(ContentDigestTest, SubnetsBytes) {
  EXPECT_EQ(Hex(EncodeSubnetContent(SampleSubnet(1))),
            "0100000000000000"  // seq
            "03000000"
            "00000000"
            "ffff0000"
            "01000000"  // choices
            "04000000"
            "00000000"
            "ffffffff"
            "01000000"
            "00010000"                          // samples
            "0102030405060708090a0b0c0d0e0f10"  // batch digest
            "0100803f"                          // loss bits
            "03000000"                          // accesses
            "00000000"
            "0000000000000000"
            "0000000000000000"
            "07"
            "32333435363738393a3b3c3d3e3f4041"
            "3c3d3e3f404142434445464748494a4b"
            "464748494a4b4c4d4e4f505152535455"
            "01000000"
            "0000000000000000"
            "ffffffffffffffff"
            "03"
            "333435363738393a3b3c3d3e3f404142"
            "3d3e3f404142434445464748494a4b4c"
            "02000000"
            "0000000000000000"
            "0000000000000000"
            "00"
            "02000000"  // activations
            "00000000"
            "00000000"
            "505152535455565758595a5b5c5d5e5f"
            "01000000"
            "00000000"
            "5152535455565758595a5b5c5d5e5f60");
}

// Likewise.
TEST(ContentDigestTest, LayoutsBytes) {
  EXPECT_EQ(Hex(EncodeSubnetLayout(SampleSubnet(1))),
            "0100000000000000"  // seq
            "03000000"          // accesses
            "00000000"
            "01000000"
            "02000000"
            "03000000"  // tasks
            "000000000000000000"
            "e803000000000000"
            "c409000000000000"
            "000000000100000001"
            "005ed0b200000000"
            "015ed0b200000000"
            "020000000000000002"
            "0500000000000000"
            "0500000000000000");
}

// The values are those of Python's hashlib.blake2b(…, digest_size=32) over the same bytes.
TEST(ContentDigestTest, Leaves) {
  EXPECT_EQ(ToHex(ContentLeaf(SampleSubnet(1))),
            "3e72a4474ebf7e9d3b223643199b3787bd10bba273b98d9b343c8f1d990766bf");
  EXPECT_EQ(ToHex(LayoutLeaf(SampleSubnet(1))),
            "ab0df7211c9a56188e75dbede5e78297b96e33a346f3049f059d29f98a321539");
}

TEST(ContentDigestTest, OfTheLayoutEverythingIsInItsLeaf) {
  const std::function<void(SubnetRow&)> changes[] = {
      [](SubnetRow& s) { s.seq = 9; },
      [](SubnetRow& s) { s.accesses[2].stage ^= 1; },
      [](SubnetRow& s) { s.activities[1].stage ^= 1; },
      [](SubnetRow& s) { s.activities[1].microbatch ^= 1; },
      [](SubnetRow& s) { s.activities[1].phase = Phase::kForward; },
      [](SubnetRow& s) { s.activities[1].begin_ns ^= 1; },
      [](SubnetRow& s) { s.activities[1].end_ns ^= 1; },
      [](SubnetRow& s) { s.activities.pop_back(); },
  };
  const SubnetRow unchanged = SampleSubnet(2);
  for (const auto& change : changes) {
    SubnetRow changed = unchanged;
    change(changed);
    EXPECT_NE(LayoutLeaf(changed), LayoutLeaf(unchanged)) << &change - changes;
  }
}

TEST(ContentDigestTest, RecordsDigest) {
  EXPECT_EQ(ToHex(DigestOf({})),
            "71c4413a30afb5cbe46ccdcb4aa7f892ce06f40218998015bdb9dc9de0e11203");
  EXPECT_EQ(ToHex(DigestOf(SampleSubnets(3))),
            "1fa937dca93931327f288d80d3fe6724b89004cb6c91d52b18f0c3e55420208b");
}

TEST(ContentDigestTest, LayoutAndClocksDoNotCount) {
  std::vector<SubnetRow> other = SampleSubnets(3);
  for (SubnetRow& subnet : other) {
    for (AccessRow& access : subnet.accesses) access.stage += 5;
    subnet.activities.clear();
  }
  std::reverse(other.begin(), other.end());
  EXPECT_EQ(DigestOf(other), DigestOf(SampleSubnets(3)));
}

TEST(ContentDigestTest, EverythingElseCounts) {
  const std::pair<const char*, std::function<void(SubnetRow&)>> changes[] = {
      {"seq", [](SubnetRow& s) { s.seq = 9; }},
      {"choice", [](SubnetRow& s) { s.choices[2] ^= 1; }},
      {"number of choices", [](SubnetRow& s) { s.choices.push_back(0); }},
      {"sample", [](SubnetRow& s) { s.samples[0] ^= 1; }},
      {"order of samples", [](SubnetRow& s) { std::swap(s.samples[0], s.samples[1]); }},
      {"batch", [](SubnetRow& s) { s.batch_digest.bytes[15] ^= 1; }},
      {"loss", [](SubnetRow& s) { s.loss_bits ^= 1; }},
      {"layer", [](SubnetRow& s) { s.accesses[2].layer = 7; }},
      {"read_seq", [](SubnetRow& s) { s.accesses[0].read_seq = -1; }},
      {"base_seq", [](SubnetRow& s) { s.accesses[0].base_seq = -1; }},
      {"weights", [](SubnetRow& s) { s.accesses[0].weights->bytes[0] ^= 1; }},
      {"optimizer state", [](SubnetRow& s) { s.accesses[0].optimizer_state->bytes[0] ^= 1; }},
      {"gradients", [](SubnetRow& s) { s.accesses[0].gradients->bytes[0] ^= 1; }},
      {"weights missing", [](SubnetRow& s) { s.accesses[0].weights.reset(); }},
      {"gradients for weights",
       [](SubnetRow& s) { s.accesses[1].weights.swap(s.accesses[1].gradients); }},
      {"access missing", [](SubnetRow& s) { s.accesses.pop_back(); }},
      {"activation", [](SubnetRow& s) { s.activations[1].digest.bytes[0] ^= 1; }},
      {"activation missing", [](SubnetRow& s) { s.activations.pop_back(); }},
      {"micro-batch", [](SubnetRow& s) { s.activations[1].microbatch = 2; }},
  };
  const Hash256 unchanged = DigestOf(SampleSubnets(3));
  for (const auto& [name, change] : changes) {
    std::vector<SubnetRow> subnets = SampleSubnets(3);
    change(subnets[2]);
    EXPECT_NE(DigestOf(subnets), unchanged) << name;
  }
}

TEST(ContentDigestTest, HeadRowsCount) {
  TemporaryFolder folder;
  const auto digest = [&] {
    auto reader = RecordReader::Open(folder / "run.db");
    return ContentDigest(**reader).value();
  };
  WriteSample(folder / "run.db", SampleSubnets(3));
  const Hash256 before = digest();
  Tamper(folder / "run.db", "UPDATE run SET device = 'cpu'; DELETE FROM environment");
  EXPECT_EQ(digest(), before);
  Tamper(folder / "run.db", "UPDATE layers SET initial_digest = zeroblob(16) WHERE layer = 9");
  const Hash256 initial_changed = digest();
  EXPECT_NE(initial_changed, before);
  Tamper(folder / "run.db", "UPDATE evaluations SET correct = 91");
  EXPECT_NE(digest(), initial_changed);
}

TEST(ContentDigestTest, DamageIsAnError) {
  TemporaryFolder folder;
  WriteSample(folder / "run.db", SampleSubnets(3));
  Tamper(folder / "run.db", "UPDATE subnets SET batch_digest = x'00' WHERE seq = 1");
  auto reader = RecordReader::Open(folder / "run.db");
  EXPECT_FALSE(ContentDigest(**reader));
}

}  // namespace
}  // namespace verbatim
