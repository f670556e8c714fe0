// Proves that proofs in files hold what they say, and are read strictly.
#include "store/proof.h"

#include <gmock/gmock.h>

#include "tests/store/sample_head.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

std::string Content(std::int64_t seq) {
  return "content of " + std::to_string(seq);
}

MerkleSource Tree(const std::string& kind) {
  return [kind](int level, std::int64_t index) -> Result<Hash256> {
    MerkleFrontier frontier;
    for (std::int64_t i = index << level; i < (index + 1) << level; ++i) {
      frontier.Add(LeafHash(kind + std::to_string(i)));
    }
    return frontier.Root();
  };
}

const MerkleSource kContent = Tree("content of ");
const MerkleSource kLayout = Tree("layout of ");

ProvenTree TreeOfSize(std::int64_t size) {
  return {size, *MerkleRoot(size, kContent), *MerkleRoot(size, kLayout)};
}

SubnetProof SampleSubnetProof(std::int64_t seq = 5) {
  return *ProveSubnet(seq, Content(seq), TreeOfSize(13), kContent);
}

ExtensionProof SampleExtension(std::int64_t old_size = 5) {
  return *ProveExtension(TreeOfSize(old_size), TreeOfSize(13), kContent, kLayout);
}

std::string With(std::string text, const std::string& part, const std::string& other) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

TEST(Proof, HoldsOfEverySubnetAndEveryOlderHead) {
  for (std::int64_t seq = 0; seq < 13; ++seq) {
    EXPECT_TRUE(Holds(SampleSubnetProof(seq)));
    EXPECT_TRUE(Holds(SampleExtension(seq)));
  }
  EXPECT_TRUE(Holds(SampleExtension(13)));
}

TEST(Proof, HoldsOfNothingElse) {
  for (std::int64_t seq = 0; seq < 13; ++seq) {
    SubnetProof proof = SampleSubnetProof(seq);
    proof.content[0] ^= 1;
    EXPECT_FALSE(Holds(proof));
    proof = SampleSubnetProof(seq);
    proof.seq = (seq + 1) % 13;
    EXPECT_FALSE(Holds(proof));
    proof = SampleSubnetProof(seq);
    proof.tree.content_root.bytes[0] ^= 1;
    EXPECT_FALSE(Holds(proof));
  }
}

TEST(Proof, ExtendsInContentAndLayout) {
  std::vector<ExtensionProof> changed(6, SampleExtension());
  changed[0].old_tree.content_root.bytes[1] ^= 1;
  changed[1].old_tree.layout_root.bytes[1] ^= 1;
  changed[2].tree.content_root.bytes[1] ^= 1;
  changed[3].tree.layout_root.bytes[1] ^= 1;
  changed[4].content_hashes.front().bytes[1] ^= 1;
  changed[5].layout_hashes.back().bytes[1] ^= 1;
  for (const ExtensionProof& proof : changed) EXPECT_FALSE(Holds(proof));
}

TEST(Proof, SurvivesItsText) {
  const std::vector<Proof> proofs{
      SampleSubnetProof(), SampleExtension(),
      *ProveSubnet(0, std::string("\0\xff", 2), TreeOfSize(1), kContent), SampleExtension(0)};
  for (const Proof& proof : proofs) {
    const auto read = ParseProof(ProofToJson(proof), "x.proof");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, proof);
  }
}

TEST(Proof, IsAboutTheTreesOfAHead) {
  const Head head = test::SampleHead();
  EXPECT_EQ(TreeOf(head), (ProvenTree{300, test::SampleHash(1), test::SampleHash(2)}));
}

TEST(Proof, RefusesTextsThatAreNoProofsAndSaysWhere) {
  const std::string subnet = ProofToJson(SampleSubnetProof());
  const std::string extension = ProofToJson(SampleExtension());
  const struct {
    std::string text, message;
  } cases[] = {
      {"", "x.proof:1:1: "},
      {"{}", "x.proof:1:1: is no proof"},
      {HeadToJson(test::SampleHead()), "x.proof:1:1: is no proof"},
      {With(subnet, "\"version\": 1", "\"version\": 2"), "x.proof:3:14: version: this proof is of"},
      {With(subnet, "\"subnet\",", "\"leaf\","), "x.proof:4:11: kind: unknown value"},
      {With(subnet, "  \"kind\": \"subnet\",\n", ""), "kind: required, but missing"},
      {With(subnet, "\"subnet\": 5", "\"subnet\": -5"), "subnet: must be from 0"},
      {With(subnet, "\"subnet\": 5", "\"subnet\": 1e9"), "subnet: expected an integer"},
      {With(subnet, "\"content\": \"", "\"content\": \"0"), "content: has an odd number of"},
      {With(subnet, "\"content\": \"", "\"content\": \"0x"), "content: must be 26 lower-case"},
      {With(subnet, "\"hashes\": [\n    \"", "\"hashes\": [\n    \"00"), "hashes[0]: must be 64"},
      {With(subnet, "\"hashes\": [", "\"hashes\": [1,"), "hashes[0]: expected a string"},
      {With(subnet, "\"hashes\": [", "\"hashes\": {\"a\": [") + "}", "x.proof:"},
      {With(subnet, "\"tree\"", "\"old_tree\""), "old_tree: unknown field"},
      {With(subnet, "\"subnets\": 13", "\"subnets\": true"), "tree.subnets: expected an integer"},
      {With(extension, "\"old_tree\"", "\"tree\""), "\"tree\" is given twice"},
      {With(extension, "\"layout_hashes\"", "\"hashes\""), "hashes: unknown field"},
      {With(extension, "layout_root", "layout"), "old_tree.layout: unknown field"},
      {With(extension, "\"kind\": \"extension\"", "\"kind\": 3"), "kind: expected a string"},
  };
  for (const auto& test : cases) {
    const auto read = ParseProof(test.text, "x.proof");
    ASSERT_FALSE(read) << test.text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(read.error().message, HasSubstr(test.message));
  }
}

TEST(Proof, RefusesTextsCutAnywhere) {
  for (const Proof& proof : {Proof(SampleSubnetProof()), Proof(SampleExtension())}) {
    const std::string text = ProofToJson(proof);
    for (std::size_t size = 0; size + 2 < text.size(); ++size) {
      EXPECT_FALSE(ParseProof(text.substr(0, size), "x")) << size;
    }
  }
}

TEST(Proof, SaysThatTheFileCannotBeRead) {
  const test::TemporaryFolder folder;
  const auto read = ReadProof(folder / "none");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(read.error().message, HasSubstr("the proof cannot be read"));
}

}  // namespace
}  // namespace verbatim
