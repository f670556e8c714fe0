// Merkle trees over a growing list of leaves, as certificate logs keep them: RFC 9162 section 2.1,
// with BLAKE2b-256 (RFC 7693) instead of SHA-256. The exact bytes: docs/format.md, "Trees".
//
// A tree of n leaves splits at the largest power of two below n. So a subtree of 2^level leaves,
// once complete, never changes: `index` counts such subtrees from the left, and (0, k) is leaf k.
// All functions are pure and may be called from any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash256.h"
#include "base/status.h"

namespace verbatim {

/// BLAKE2b-256 of some bytes.
Hash256 Blake2b(std::string_view bytes);
/// Of some pieces one after another.
Hash256 Blake2bOfPieces(std::span<const std::string_view> pieces);
/// Of the byte 0, then the leaf's content.
Hash256 LeafHash(std::string_view content);
/// Of the byte 1, then both children.
Hash256 NodeHash(const Hash256& left, const Hash256& right);

/// Gives the hash of a complete subtree.
using MerkleSource = std::function<Result<Hash256>(int level, std::int64_t index)>;

/// A tree that grows by a leaf at a time, in memory for its complete subtrees only: one hash per
/// level. Not thread-safe.
class MerkleFrontier {
 public:
  /// Told of each subtree that the new leaf completes, from level 1 upwards.
  using OnComplete = std::function<void(int level, std::int64_t index, const Hash256& hash)>;

  void Add(const Hash256& leaf, const OnComplete& on_complete = {});
  std::int64_t size() const { return size_; }
  /// Of no leaves: Blake2b of no bytes.
  Hash256 Root() const;

 private:
  friend Result<MerkleFrontier> FrontierOf(std::int64_t size, const MerkleSource& source);

  std::int64_t size_ = 0;
  std::vector<Hash256> complete_;  ///< from the largest to the smallest
};

/// The frontier that the first `size` leaves leave: O(log size) subtrees are asked for.
Result<MerkleFrontier> FrontierOf(std::int64_t size, const MerkleSource& source);

/// Root of the tree of the first `size` leaves: O(log size) subtrees are asked for.
Result<Hash256> MerkleRoot(std::int64_t size, const MerkleSource& source);

/// The lowest leaf in which two trees of `size` leaves differ, found in O(log size) subtrees of
/// each; nothing where they are equal. kBadInput where a subtree differs but neither half does.
Result<std::optional<std::int64_t>> FirstDifference(std::int64_t size, const MerkleSource& left,
                                                    const MerkleSource& right);

/// Hashes that show that leaf `index` is in the tree of `size` leaves (RFC 9162, 2.1.3.1). CHECKs
/// that 0 <= index < size.
Result<std::vector<Hash256>> InclusionProof(std::int64_t index, std::int64_t size,
                                            const MerkleSource& source);
/// Whether the proof does show it (2.1.3.2). False for anything that makes no sense. Size and root
/// must be of one head: a root alone does not tell its size.
bool VerifyInclusion(const Hash256& leaf, std::int64_t index, std::int64_t size,
                     const std::vector<Hash256>& proof, const Hash256& root);

/// Hashes that show that the tree of `new_size` leaves begins with that of `old_size` (2.1.4.1).
/// CHECKs that 0 <= old_size <= new_size.
Result<std::vector<Hash256>> ConsistencyProof(std::int64_t old_size, std::int64_t new_size,
                                              const MerkleSource& source);
/// Whether the proof does show it (2.1.4.2). False for anything that makes no sense.
bool VerifyConsistency(std::int64_t old_size, const Hash256& old_root, std::int64_t new_size,
                       const Hash256& new_root, const std::vector<Hash256>& proof);

}  // namespace verbatim
