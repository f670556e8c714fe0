#include "store/merkle.h"

#include <fmt/format.h>

#include <bit>

#include "base/check.h"
#include "store/use_sodium.h"

namespace verbatim {
namespace {

class Blake2bState {
 public:
  Blake2bState() {
    UseSodium();
    crypto_generichash_init(&state_, nullptr, 0, sizeof(Hash256::bytes));
  }

  Blake2bState& Add(const void* data, std::size_t size) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(data), size);
    return *this;
  }
  Blake2bState& Add(const Hash256& hash) { return Add(hash.bytes.data(), hash.bytes.size()); }

  Hash256 Finish() {
    Hash256 hash;
    crypto_generichash_final(&state_, hash.bytes.data(), hash.bytes.size());
    return hash;
  }

 private:
  crypto_generichash_state state_;
};

constexpr unsigned char kLeaf = 0;
constexpr unsigned char kNode = 1;

/// Level of the largest complete subtree at the left of a tree of `size` leaves.
int LargestLevel(std::int64_t size) {
  return std::bit_width(static_cast<std::uint64_t>(size)) - 1;
}

/// Where a tree of two leaves or more splits: the largest power of two below its size.
std::int64_t SplitOf(std::int64_t size) {
  return std::int64_t{1} << LargestLevel(size - 1);
}

/// Root of the leaves [begin, begin + size), where begin is a multiple of the largest power of two
/// in size, or of more.
Result<Hash256> SubtreeRoot(std::int64_t begin, std::int64_t size, const MerkleSource& source) {
  const int level = LargestLevel(size);
  const std::int64_t left = std::int64_t{1} << level;
  ASSIGN_OR_RETURN(const Hash256 hash, source(level, begin >> level));
  if (left == size) return hash;
  ASSIGN_OR_RETURN(const Hash256 rest, SubtreeRoot(begin + left, size - left, source));
  return NodeHash(hash, rest);
}

using Hashes = std::vector<Hash256>;

/// PATH of RFC 9162 for a leaf of the subtree [begin, begin + size), from the leaf upwards.
Status AddInclusion(std::int64_t index, std::int64_t begin, std::int64_t size,
                    const MerkleSource& source, Hashes& proof) {
  if (size == 1) return {};
  const std::int64_t left = SplitOf(size);
  const bool is_left = index < begin + left;
  const std::int64_t other = is_left ? begin + left : begin;
  const std::int64_t here = is_left ? begin : begin + left;
  RETURN_IF_ERROR(AddInclusion(index, here, is_left ? left : size - left, source, proof));
  ASSIGN_OR_RETURN(const Hash256 hash, SubtreeRoot(other, is_left ? size - left : left, source));
  proof.push_back(hash);
  return {};
}

/// SUBPROOF of RFC 9162: of the first `old_size` leaves of the subtree [begin, begin + size), which
/// are all of the old tree (`is_whole`) or its end.
Status AddConsistency(std::int64_t old_size, std::int64_t begin, std::int64_t size, bool is_whole,
                      const MerkleSource& source, Hashes& proof) {
  if (old_size == size && is_whole) return {};
  const std::int64_t left = old_size == size ? size : SplitOf(size);
  std::int64_t other = begin;
  std::int64_t other_size = left;
  if (old_size < size && old_size <= left) {
    RETURN_IF_ERROR(AddConsistency(old_size, begin, left, is_whole, source, proof));
    other = begin + left;
    other_size = size - left;
  } else if (old_size < size) {
    RETURN_IF_ERROR(
        AddConsistency(old_size - left, begin + left, size - left, false, source, proof));
  }
  ASSIGN_OR_RETURN(const Hash256 hash, SubtreeRoot(other, other_size, source));
  proof.push_back(hash);
  return {};
}

/// Climbs from a leaf to the root: `index` of the node that was reached, and of the last one of its
/// level.
struct Climb {
  std::int64_t index;
  std::int64_t last;

  bool IsAtRoot() const { return last == 0; }
  /// Whether the next hash of a proof is the node's left neighbour.
  bool IsRight() const { return (index & 1) != 0 || index == last; }
  void Up() {
    index >>= 1;
    last >>= 1;
  }
  /// A node without a right neighbour is its own parent, until it is a right child.
  void SkipLoneParents() {
    while ((index & 1) == 0 && index != 0) Up();
  }
};

/// Whether the node differs in two trees; errors are the sources'.
Result<bool> Differs(int level, std::int64_t index, const MerkleSource& left,
                     const MerkleSource& right) {
  ASSIGN_OR_RETURN(const Hash256 in_left, left(level, index));
  ASSIGN_OR_RETURN(const Hash256 in_right, right(level, index));
  return in_left != in_right;
}

/// The lowest leaf that differs under a node that does.
Result<std::int64_t> Descend(int level, std::int64_t index, const MerkleSource& left,
                             const MerkleSource& right) {
  while (level > 0) {
    --level;
    index *= 2;
    ASSIGN_OR_RETURN(bool differs, Differs(level, index, left, right));
    if (differs) continue;
    ++index;
    ASSIGN_OR_RETURN(differs, Differs(level, index, left, right));
    if (differs) continue;
    return BadInput(fmt::format("two trees differ above the leaves {} to {}, but not in them",
                                (index - 1) << level, ((index + 1) << level) - 1),
                    "one of the two was changed after it was written");
  }
  return index;
}

}  // namespace

Hash256 Blake2b(std::string_view bytes) {
  return Blake2bState().Add(bytes.data(), bytes.size()).Finish();
}

Hash256 Blake2bOfPieces(std::span<const std::string_view> pieces) {
  Blake2bState state;
  for (const std::string_view piece : pieces) state.Add(piece.data(), piece.size());
  return state.Finish();
}

Hash256 LeafHash(std::string_view content) {
  return Blake2bState().Add(&kLeaf, 1).Add(content.data(), content.size()).Finish();
}

Hash256 NodeHash(const Hash256& left, const Hash256& right) {
  return Blake2bState().Add(&kNode, 1).Add(left).Add(right).Finish();
}

void MerkleFrontier::Add(const Hash256& leaf, const OnComplete& on_complete) {
  Hash256 hash = leaf;
  int level = 0;
  for (std::int64_t rest = size_; rest & 1; rest >>= 1) {
    hash = NodeHash(complete_.back(), hash);
    complete_.pop_back();
    ++level;
    if (on_complete) on_complete(level, size_ >> level, hash);
  }
  complete_.push_back(hash);
  ++size_;
}

Hash256 MerkleFrontier::Root() const {
  if (complete_.empty()) return Blake2b({});
  Hash256 root = complete_.back();
  for (auto left = complete_.rbegin() + 1; left != complete_.rend(); ++left) {
    root = NodeHash(*left, root);
  }
  return root;
}

Result<MerkleFrontier> FrontierOf(std::int64_t size, const MerkleSource& source) {
  VERBATIM_CHECK(size >= 0, "a tree of {} leaves", size);
  MerkleFrontier frontier;
  while (frontier.size_ < size) {
    const int level = LargestLevel(size - frontier.size_);
    ASSIGN_OR_RETURN(const Hash256 hash, source(level, frontier.size_ >> level));
    frontier.complete_.push_back(hash);
    frontier.size_ += std::int64_t{1} << level;
  }
  return frontier;
}

Result<Hash256> MerkleRoot(std::int64_t size, const MerkleSource& source) {
  VERBATIM_CHECK(size >= 0, "a tree of {} leaves", size);
  if (size == 0) return Blake2b({});
  return SubtreeRoot(0, size, source);
}

Result<std::optional<std::int64_t>> FirstDifference(std::int64_t size, const MerkleSource& left,
                                                    const MerkleSource& right) {
  VERBATIM_CHECK(size >= 0, "trees of {} leaves", size);
  for (std::int64_t begin = 0; begin < size;) {
    const int level = LargestLevel(size - begin);
    ASSIGN_OR_RETURN(const bool differs, Differs(level, begin >> level, left, right));
    if (differs) return Descend(level, begin >> level, left, right);
    begin += std::int64_t{1} << level;
  }
  return std::nullopt;
}

Result<std::vector<Hash256>> InclusionProof(std::int64_t index, std::int64_t size,
                                            const MerkleSource& source) {
  VERBATIM_CHECK(0 <= index && index < size, "leaf {} of {}", index, size);
  Hashes proof;
  RETURN_IF_ERROR(AddInclusion(index, 0, size, source, proof));
  return proof;
}

bool VerifyInclusion(const Hash256& leaf, std::int64_t index, std::int64_t size,
                     const std::vector<Hash256>& proof, const Hash256& root) {
  if (index < 0 || index >= size) return false;
  Climb climb{index, size - 1};
  Hash256 hash = leaf;
  for (const Hash256& other : proof) {
    if (climb.IsAtRoot()) return false;
    const bool is_right = climb.IsRight();
    hash = is_right ? NodeHash(other, hash) : NodeHash(hash, other);
    if (is_right) climb.SkipLoneParents();
    climb.Up();
  }
  return climb.IsAtRoot() && hash == root;
}

Result<std::vector<Hash256>> ConsistencyProof(std::int64_t old_size, std::int64_t new_size,
                                              const MerkleSource& source) {
  VERBATIM_CHECK(0 <= old_size && old_size <= new_size, "{} of {} leaves", old_size, new_size);
  Hashes proof;
  if (old_size == 0) return proof;  // every tree begins with the empty one
  RETURN_IF_ERROR(AddConsistency(old_size, 0, new_size, true, source, proof));
  return proof;
}

bool VerifyConsistency(std::int64_t old_size, const Hash256& old_root, std::int64_t new_size,
                       const Hash256& new_root, const std::vector<Hash256>& proof) {
  if (old_size < 0 || old_size > new_size) return false;
  if (old_size == new_size) return proof.empty() && old_root == new_root;
  if (old_size == 0) return proof.empty() && old_root == Blake2b({});
  Climb climb{old_size - 1, new_size - 1};
  while ((climb.index & 1) != 0) climb.Up();
  // Where the old tree is one complete subtree, the proof begins with its root, left out.
  const bool is_complete = std::has_single_bit(static_cast<std::uint64_t>(old_size));
  if (!is_complete && proof.empty()) return false;
  Hash256 old_hash = is_complete ? old_root : proof.front();
  Hash256 new_hash = old_hash;
  for (auto other = proof.begin() + (is_complete ? 0 : 1); other != proof.end(); ++other) {
    if (climb.IsAtRoot()) return false;
    const bool is_right = climb.IsRight();
    if (is_right) old_hash = NodeHash(*other, old_hash);
    new_hash = is_right ? NodeHash(*other, new_hash) : NodeHash(new_hash, *other);
    if (is_right) climb.SkipLoneParents();
    climb.Up();
  }
  return climb.IsAtRoot() && old_hash == old_root && new_hash == new_root;
}

}  // namespace verbatim
