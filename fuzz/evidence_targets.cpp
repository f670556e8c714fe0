#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/target.h"
#include "store/head.h"
#include "store/proof.h"
#include "store/signing.h"
#include "tests/store/sample_head.h"

namespace verbatim::fuzz {
namespace {

using test::SampleHash;
using test::SampleHead;

void MakePrivate(const std::filesystem::path& path) {
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
}

// Not secret: the key of 32 equal bytes.
SecretKey FixedKey() {
  const auto path = WriteScratch("fixed", "verbatim-secret-key 1 " + std::string(64, '7') + "\n");
  MakePrivate(path);
  const auto key = ReadSecretKey(path);
  VERBATIM_CHECK(key.has_value(), "{}", key.error().message);
  return *key;
}

Head SignedHead() {
  Head head = SampleHead();
  SignHead(FixedKey(), head);
  return head;
}

// Of a tree whose leaves are SampleHash(0), SampleHash(1), …
MerkleSource LeavesBelow(std::int64_t size) {
  return [size](int level, std::int64_t index) -> Result<Hash256> {
    MerkleFrontier tree;
    for (std::int64_t i = index << level; i < (index + 1) << level; ++i) {
      VERBATIM_CHECK(i < size, "leaf {} of {}", i, size);
      tree.Add(SampleHash(static_cast<int>(i)));
    }
    return tree.Root();
  };
}

ProvenTree TreeOfSize(std::int64_t size) {
  const Hash256 root = *MerkleRoot(size, LeavesBelow(size));
  return {size, root, root};
}

}  // namespace

void RunHead(std::string_view input) {
  const auto heads = ParseHeads(input, "input");
  if (!heads) return;
  VERBATIM_CHECK(!heads->empty(), "no head");
  std::string text;
  for (const Head& head : *heads) {
    if (head.signature) (void)IsSignedBy(head, head.signature->key);
    text += HeadToJson(head);
  }
  const auto again = ParseHeads(text, "written");
  VERBATIM_CHECK(again.has_value() && *again == *heads, "{}", text);
}

std::vector<std::string> HeadSeeds() {
  Head unfinished = SampleHead(1);
  unfinished.end.reset();
  return {HeadToJson(SampleHead()), HeadToJson(SignedHead()),
          HeadToJson(unfinished) + HeadToJson(SignedHead())};
}

void RunProof(std::string_view input) {
  const auto proof = ParseProof(input, "input");
  if (!proof) return;
  (void)Holds(*proof);
  const std::string text = ProofToJson(*proof);
  const auto again = ParseProof(text, "written");
  VERBATIM_CHECK(again.has_value() && *again == *proof, "{}", text);
}

std::vector<std::string> ProofSeeds() {
  std::vector<std::string> seeds;
  for (const std::int64_t size : {1, 5, 21}) {
    seeds.push_back(
        ProofToJson(*ProveSubnet(size / 2, "content", TreeOfSize(size), LeavesBelow(size))));
    seeds.push_back(ProofToJson(*ProveExtension(TreeOfSize(size / 2), TreeOfSize(size),
                                                LeavesBelow(size), LeavesBelow(size))));
  }
  return seeds;
}

void RunKey(std::string_view input) {
  const auto path = WriteScratch("key", input);
  MakePrivate(path);
  if (const auto key = ReadSecretKey(path)) {
    VERBATIM_CHECK(Verify(Sign(*key, "message"), "message"), "a key that does not sign");
  }
  (void)ReadPublicKey(path);
}

}  // namespace verbatim::fuzz
