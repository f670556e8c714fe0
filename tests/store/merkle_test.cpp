// Proves the trees against a plain definition of RFC 9162, and that proofs show what they should
// and nothing else.
#include "store/merkle.h"

#include <gmock/gmock.h>

#include <bit>

namespace verbatim {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSizeMax = 70;

Hash256 Leaf(std::int64_t index, std::int64_t kind = 0) {
  return LeafHash("leaf " + std::to_string(index) + " of " + std::to_string(kind));
}

std::vector<Hash256> Leaves(std::int64_t size) {
  std::vector<Hash256> leaves;
  for (std::int64_t i = 0; i < size; ++i) leaves.push_back(Leaf(i));
  return leaves;
}

/// MTH as section 2.1.1 defines it.
Hash256 PlainRoot(const std::vector<Hash256>& leaves) {
  if (leaves.empty()) return Blake2b({});
  if (leaves.size() == 1) return leaves[0];
  std::size_t split = 1;
  while (split * 2 < leaves.size()) split *= 2;
  const auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(split);
  return NodeHash(PlainRoot({leaves.begin(), middle}), PlainRoot({middle, leaves.end()}));
}

/// Of complete subtrees only, as a record keeps them; counts what was asked for.
MerkleSource SourceOf(const std::vector<Hash256>& leaves, int* asked = nullptr) {
  std::vector<std::vector<Hash256>> levels{leaves};
  while (levels.back().size() > 1) {
    std::vector<Hash256> parents;
    for (std::size_t i = 0; i + 1 < levels.back().size(); i += 2) {
      parents.push_back(NodeHash(levels.back()[i], levels.back()[i + 1]));
    }
    levels.push_back(std::move(parents));
  }
  return [levels, asked](int level, std::int64_t index) -> Result<Hash256> {
    if (asked != nullptr) ++*asked;
    if (level >= std::ssize(levels)) return BadInput("no such level");
    const std::vector<Hash256>& hashes = levels[static_cast<std::size_t>(level)];
    if (index < 0 || index >= std::ssize(hashes)) return BadInput("no complete subtree");
    return hashes[static_cast<std::size_t>(index)];
  };
}

Hash256 Changed(Hash256 hash) {
  hash.bytes[17] ^= 0x20;
  return hash;
}

/// The proof with each hash changed, each left out, each given twice, and with one more.
std::vector<std::vector<Hash256>> ChangesOf(const std::vector<Hash256>& proof) {
  std::vector<std::vector<Hash256>> changes;
  for (std::size_t i = 0; i < proof.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    changes.push_back(proof);
    changes.back()[i] = Changed(proof[i]);
    changes.push_back(proof);
    changes.back().erase(changes.back().begin() + at);
    changes.push_back(proof);
    changes.back().insert(changes.back().begin() + at, proof[i]);
  }
  changes.push_back(proof);
  changes.back().push_back(Leaf(0));
  return changes;
}

TEST(Merkle, HashesAreThoseOfTheFormat) {
  EXPECT_EQ(ToHex(Blake2b({})), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(ToHex(Blake2b("abc")),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(ToHex(LeafHash({})),
            "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314");
  EXPECT_EQ(ToHex(LeafHash("abc")),
            "4b44b5a5f9e6fafead231e4d609a8e88053a6053c087b68e24e31faf0fb8dfe7");
  EXPECT_EQ(ToHex(NodeHash(LeafHash("a"), LeafHash("b"))),
            "ee616625a590167bc4b3dc703ab4f3f2ddecbee6b9d05fee9281f02046e6082e");
  EXPECT_EQ(ToHex(PlainRoot(Leaves(7))),
            "b10cb178d8b17ff326ced1e2700dc2157cb38851bf49dfc9b8767cb68f2044be");
}

TEST(Merkle, GrowingTreeHasTheRootOfTheDefinition) {
  MerkleFrontier frontier;
  for (std::int64_t size = 0; size <= kSizeMax; ++size) {
    const std::vector<Hash256> leaves = Leaves(size);
    EXPECT_EQ(frontier.size(), size);
    EXPECT_EQ(frontier.Root(), PlainRoot(leaves)) << size;
    int asked = 0;
    EXPECT_EQ(*MerkleRoot(size, SourceOf(leaves, &asked)), PlainRoot(leaves)) << size;
    EXPECT_EQ(asked, std::popcount(static_cast<std::uint64_t>(size))) << size;
    frontier.Add(Leaf(size));
  }
}

TEST(Merkle, GrowingTreeTellsEverySubtreeOnceComplete) {
  const std::vector<Hash256> leaves = Leaves(kSizeMax);
  const MerkleSource source = SourceOf(leaves);
  MerkleFrontier frontier;
  std::int64_t told = 0;
  for (const Hash256& leaf : leaves) {
    int expected_level = 1;
    frontier.Add(leaf, [&](int level, std::int64_t index, const Hash256& hash) {
      EXPECT_EQ(level, expected_level++);
      EXPECT_EQ((index + 1) << level, frontier.size() + 1);
      EXPECT_EQ(hash, *source(level, index));
      ++told;
    });
  }
  EXPECT_EQ(told, 35 + 17 + 8 + 4 + 2 + 1);
}

TEST(Merkle, EveryLeafHasAProof) {
  for (std::int64_t size = 1; size <= kSizeMax; ++size) {
    const std::vector<Hash256> leaves = Leaves(size);
    const Hash256 root = PlainRoot(leaves);
    for (std::int64_t index = 0; index < size; ++index) {
      const auto proof = InclusionProof(index, size, SourceOf(leaves));
      ASSERT_TRUE(proof) << proof.error().message;
      EXPECT_LE(std::ssize(*proof), std::bit_width(static_cast<std::uint64_t>(size - 1)));
      EXPECT_TRUE(
          VerifyInclusion(leaves[static_cast<std::size_t>(index)], index, size, *proof, root))
          << index << " of " << size;
    }
  }
}

TEST(Merkle, InclusionRefusesEveryChange) {
  for (const std::int64_t size : {1, 2, 3, 7, 8, 13, 33}) {
    const std::vector<Hash256> leaves = Leaves(size);
    const Hash256 root = PlainRoot(leaves);
    for (std::int64_t index = 0; index < size; ++index) {
      const Hash256 leaf = Leaf(index);
      const auto proof = *InclusionProof(index, size, SourceOf(leaves));
      EXPECT_FALSE(VerifyInclusion(Changed(leaf), index, size, proof, root));
      EXPECT_FALSE(VerifyInclusion(leaf, index, size, proof, Changed(root)));
      for (const auto& changed : ChangesOf(proof)) {
        EXPECT_FALSE(VerifyInclusion(leaf, index, size, changed, root)) << index << " of " << size;
      }
      for (std::int64_t other = -1; other <= size + 1; ++other) {
        EXPECT_EQ(VerifyInclusion(leaf, other, size, proof, root), other == index)
            << index << " as " << other << " of " << size;
        if (other == size) continue;
        const Hash256 other_root = PlainRoot(Leaves(std::max<std::int64_t>(other, 0)));
        EXPECT_FALSE(VerifyInclusion(leaf, index, other, proof, other_root))
            << index << " of " << size << " as of " << other;
      }
    }
  }
}

TEST(Merkle, EveryTreeIsShownToExtendEveryEarlierOne) {
  for (std::int64_t size = 0; size <= kSizeMax; ++size) {
    const std::vector<Hash256> leaves = Leaves(size);
    const Hash256 root = PlainRoot(leaves);
    for (std::int64_t old_size = 0; old_size <= size; ++old_size) {
      const auto proof = ConsistencyProof(old_size, size, SourceOf(leaves));
      ASSERT_TRUE(proof) << proof.error().message;
      EXPECT_TRUE(VerifyConsistency(old_size, PlainRoot(Leaves(old_size)), size, root, *proof))
          << old_size << " in " << size;
    }
  }
}

TEST(Merkle, ConsistencyRefusesEveryChange) {
  for (const std::int64_t size : {1, 2, 3, 7, 8, 13, 33}) {
    const std::vector<Hash256> leaves = Leaves(size);
    const Hash256 root = PlainRoot(leaves);
    for (std::int64_t old_size = 0; old_size <= size; ++old_size) {
      const Hash256 old_root = PlainRoot(Leaves(old_size));
      const auto proof = *ConsistencyProof(old_size, size, SourceOf(leaves));
      EXPECT_FALSE(VerifyConsistency(old_size, Changed(old_root), size, root, proof));
      // Nothing is said of a tree that begins with the empty one.
      const bool binds_root = old_size > 0;
      EXPECT_EQ(VerifyConsistency(old_size, old_root, size, Changed(root), proof), !binds_root);
      for (const auto& changed : ChangesOf(proof)) {
        EXPECT_FALSE(VerifyConsistency(old_size, old_root, size, root, changed))
            << old_size << " in " << size;
      }
      // Two equal trees need no hash, nor does the empty one.
      const bool is_empty = proof.empty();
      for (std::int64_t other = 0; other <= size + 1; ++other) {
        const Hash256 other_root = PlainRoot(Leaves(other));
        EXPECT_EQ(VerifyConsistency(other, other_root, size, root, proof),
                  other == old_size || (is_empty && (other == 0 || other == size)))
            << old_size << " in " << size << " as " << other;
        EXPECT_EQ(VerifyConsistency(old_size, old_root, other, other_root, proof),
                  other == size || (is_empty && (old_size == 0 || other == old_size)))
            << old_size << " in " << size << " as in " << other;
      }
    }
  }
}

TEST(Merkle, AnotherHistoryIsNoExtension) {
  for (std::int64_t size = 2; size <= 20; ++size) {
    for (std::int64_t old_size = 1; old_size < size; ++old_size) {
      for (std::int64_t changed = 0; changed < old_size; ++changed) {
        std::vector<Hash256> leaves = Leaves(size);
        leaves[static_cast<std::size_t>(changed)] = Leaf(changed, 1);
        const auto proof = *ConsistencyProof(old_size, size, SourceOf(leaves));
        EXPECT_FALSE(VerifyConsistency(old_size, PlainRoot(Leaves(old_size)), size,
                                       PlainRoot(leaves), proof));
      }
    }
  }
}

TEST(Merkle, ProofsRefuseWhatMakesNoSense) {
  const std::vector<Hash256> leaves = Leaves(4);
  const Hash256 root = PlainRoot(leaves);
  EXPECT_FALSE(VerifyInclusion(leaves[0], 0, 0, {}, Blake2b({})));
  EXPECT_FALSE(VerifyInclusion(leaves[0], -1, 4, {}, root));
  EXPECT_FALSE(VerifyInclusion(leaves[0], 0, -4, {}, root));
  EXPECT_FALSE(VerifyInclusion(leaves[0], INT64_MAX, INT64_MAX, {}, root));
  EXPECT_FALSE(VerifyInclusion(leaves[0], INT64_MAX - 1, INT64_MAX, {}, leaves[0]));
  EXPECT_FALSE(VerifyConsistency(-1, Blake2b({}), 4, root, {}));
  EXPECT_FALSE(VerifyConsistency(5, root, 4, root, {}));
  EXPECT_FALSE(VerifyConsistency(INT64_MAX - 1, root, INT64_MAX, root, {}));
}

TEST(Merkle, FindsTheLowestLeafThatDiffers) {
  for (std::int64_t size = 0; size <= kSizeMax; ++size) {
    const std::vector<Hash256> leaves = Leaves(size);
    EXPECT_EQ(*FirstDifference(size, SourceOf(leaves), SourceOf(leaves)), std::nullopt);
    for (std::int64_t first = 0; first < size; ++first) {
      std::vector<Hash256> other = leaves;
      other[static_cast<std::size_t>(first)] = Leaf(first, 1);
      if (first % 3 == 0) other.back() = Leaf(size, 1);
      int asked = 0;
      const auto found = FirstDifference(size, SourceOf(leaves, &asked), SourceOf(other));
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(*found, first) << "of " << size;
      EXPECT_LE(asked, 3 * std::bit_width(static_cast<std::uint64_t>(size)));
    }
  }
}

TEST(Merkle, ComparesTheBeginningOfALongerTree) {
  const std::vector<Hash256> longer = Leaves(50);
  EXPECT_EQ(*FirstDifference(37, SourceOf(Leaves(37)), SourceOf(longer)), std::nullopt);
}

TEST(Merkle, NamesNodesThatContradictTheirLeaves) {
  const std::vector<Hash256> leaves = Leaves(16);
  const auto forged = [&](int level, std::int64_t index) -> Result<Hash256> {
    if (level >= 2 && index == 0) return Leaf(0, 1);
    return SourceOf(leaves)(level, index);
  };
  const auto found = FirstDifference(16, SourceOf(leaves), forged);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(found.error().message, HasSubstr("the leaves 0 to 3"));
}

TEST(Merkle, PassesErrorsOn) {
  const MerkleSource broken = [](int, std::int64_t) -> Result<Hash256> {
    return Failed("no disk");
  };
  const std::vector<Hash256> leaves = Leaves(5);
  EXPECT_EQ(MerkleRoot(5, broken).error().message, "no disk");
  EXPECT_EQ(InclusionProof(2, 5, broken).error().message, "no disk");
  EXPECT_EQ(ConsistencyProof(2, 5, broken).error().message, "no disk");
  EXPECT_EQ(FirstDifference(5, SourceOf(leaves), broken).error().message, "no disk");
}

}  // namespace
}  // namespace verbatim
