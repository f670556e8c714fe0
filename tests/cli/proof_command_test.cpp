// Proves that `verbatim proof` takes what heads bear out, and nothing else.
#include <gmock/gmock.h>

#include "store/proof.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

MerkleSource Tree(const std::string& kind) {
  return [kind](int level, std::int64_t index) -> Result<Hash256> {
    MerkleFrontier frontier;
    for (std::int64_t i = index << level; i < (index + 1) << level; ++i) {
      frontier.Add(LeafHash(kind + std::to_string(i)));
    }
    return frontier.Root();
  };
}

class ProofCommand : public CommandTest {
 protected:
  Head HeadOf(std::int64_t size, const std::string& kind = "content ") const {
    Head head;
    head.subnets = size;
    head.content_root = *MerkleRoot(size, Tree(kind));
    head.layout_root = *MerkleRoot(size, Tree("layout "));
    head.created_utc = "2026-01-31T12:00:00Z";
    return head;
  }
  Head SignedHeadOf(std::int64_t size, const SecretKey& key) const {
    Head head = HeadOf(size);
    SignHead(key, head);
    return head;
  }
  std::string WriteHeads(const std::string& name, const std::vector<Head>& heads) const {
    std::string text;
    for (const Head& head : heads) text += HeadToJson(head);
    return WriteFile(name, text);
  }
  std::string WriteSubnetProof(std::int64_t seq, std::int64_t size) const {
    const Proof proof =
        *ProveSubnet(seq, "content " + std::to_string(seq), TreeOf(HeadOf(size)), Tree("content "));
    return WriteFile("subnet.proof", ProofToJson(proof));
  }
  std::string WriteExtension(std::int64_t old_size, std::int64_t size) const {
    const Proof proof = *ProveExtension(TreeOf(HeadOf(old_size)), TreeOf(HeadOf(size)),
                                        Tree("content "), Tree("layout "));
    return WriteFile("extension.proof", ProofToJson(proof));
  }
  void ExpectNot(const CommandResult& result, const std::string& why) const {
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr(": DOES NOT HOLD\n"));
    EXPECT_THAT(result.out, HasSubstr(why));
  }

  const SecretKey key_ = GenerateKey();
};

TEST_F(ProofCommand, TakesASubnetUnderAHead) {
  const std::string heads = WriteHeads("run.head", {HeadOf(8), HeadOf(13)});
  const CommandResult result = Run({"proof", WriteSubnetProof(5, 13), "--head", heads});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("subnet.proof: holds\n  subnet 5 is one of the 13 subnets"));
  EXPECT_EQ(result.err, "");
}

TEST_F(ProofCommand, WantsAHeadOfThatSizeAndRoot) {
  const std::string proof = WriteSubnetProof(5, 13);
  ExpectNot(Run({"proof", proof, "--head", WriteHeads("a.head", {HeadOf(12)})}),
            "no head was given of 13 subnets");
  ExpectNot(Run({"proof", proof, "--head", WriteHeads("b.head", {HeadOf(13, "other ")})}),
            "has other roots than the proof for 13 subnets");
}

TEST_F(ProofCommand, NoticesAChangedProof) {
  const std::string heads = WriteHeads("run.head", {HeadOf(13)});
  std::string text = ReadFile(WriteSubnetProof(5, 13));
  text.replace(text.find("\"subnet\": 5"), 11, "\"subnet\": 6");
  ExpectNot(Run({"proof", WriteFile("x.proof", text), "--head", heads}),
            "its hashes do not lead to its root");
}

TEST_F(ProofCommand, WantsASignatureWhereAKeyIsGiven) {
  ASSERT_TRUE(WritePublicKey(PublicKeyOf(key_), Path("key.pub")));
  const std::string proof = WriteSubnetProof(5, 13);
  const auto run = [&](const std::string& heads) {
    return Run({"proof", proof, "--head", heads, "--key", Path("key.pub")});
  };
  EXPECT_EQ(run(WriteHeads("good.head", {HeadOf(13), SignedHeadOf(13, key_)})).exit_code, 0);
  ExpectNot(run(WriteHeads("bare.head", {HeadOf(13)})), "bears no signature by");
  ExpectNot(run(WriteHeads("other.head", {SignedHeadOf(13, GenerateKey())})),
            "bears no signature by");
  Head edited = SignedHeadOf(13, key_);
  edited.created_utc = "2027-01-31T12:00:00Z";
  ExpectNot(run(WriteHeads("edited.head", {edited})), "bears no signature by");
}

TEST_F(ProofCommand, TakesALongerRunOfTwoHeads) {
  const std::string proof = WriteExtension(5, 13);
  const CommandResult result = Run({"proof", proof, "--head", WriteHeads("old.head", {HeadOf(5)}),
                                    "--head", WriteHeads("new.head", {HeadOf(13)})});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("the head of 13 subnets of 2026-01-31T12:00:00Z in "));
  EXPECT_THAT(result.out,
              HasSubstr(" covers a record that begins with that of the head of 5 subnets of "));
  ExpectNot(Run({"proof", proof, "--head", Path("old.head")}), "no head was given of 13 subnets");
  ExpectNot(Run({"proof", proof, "--head", Path("new.head")}), "no head was given of 5 subnets");
}

TEST_F(ProofCommand, WantsBothHeadsOfOneRun) {
  Head other = HeadOf(5);
  other.start.bytes[0] = 1;
  ExpectNot(
      Run({"proof", WriteExtension(5, 13), "--head", WriteHeads("run.head", {other, HeadOf(13)})}),
      "are of runs that start differently");
}

TEST_F(ProofCommand, SaysWhatItCannotRead) {
  const std::string proof = WriteSubnetProof(5, 13);
  const std::string heads = WriteHeads("run.head", {HeadOf(13)});
  const std::vector<std::vector<std::string>> cases{
      {"proof", Path("none"), "--head", heads},
      {"proof", heads, "--head", heads},
      {"proof", proof, "--head", Path("none")},
      {"proof", proof, "--head", proof},
      {"proof", proof, "--head", heads, "--key", Path("none")},
      {"proof", proof, "--head", heads, "--key", heads},
  };
  for (const auto& arguments : cases) {
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 3) << testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::StartsWith("verbatim: error: "));
  }
  EXPECT_EQ(Run({"proof", proof}).exit_code, 2);
}

}  // namespace
}  // namespace verbatim
