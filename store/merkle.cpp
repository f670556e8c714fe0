#include "store/merkle.h"

#include <sodium.h>

#include <bit>

#include "base/check.h"

namespace verbatim {
namespace {

class Blake2bState {
 public:
  Blake2bState() {
    // Chooses among instruction sets, once; any thread may be the first.
    static const int ready = sodium_init();
    VERBATIM_CHECK(ready >= 0, "libsodium cannot be used");
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

}  // namespace

Hash256 Blake2b(std::string_view bytes) {
  return Blake2bState().Add(bytes.data(), bytes.size()).Finish();
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

Result<Hash256> MerkleRoot(std::int64_t size, const MerkleSource& source) {
  VERBATIM_CHECK(size >= 0, "a tree of {} leaves", size);
  if (size == 0) return Blake2b({});
  return SubtreeRoot(0, size, source);
}

}  // namespace verbatim
