// Proofs in files of their own: that a subnet is under a head, or that a longer record continues an
// older one (docs/format.md, "Proofs"). Who has the heads needs no record to check them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash256.h"
#include "base/status.h"
#include "store/head.h"
#include "store/merkle.h"

namespace verbatim {

/// What of a head a proof is about: `subnets` leaves under both roots.
struct ProvenTree {
  std::int64_t subnets = 0;
  Hash256 content_root;
  Hash256 layout_root;
  bool operator==(const ProvenTree&) const = default;
};
ProvenTree TreeOf(const Head& head);

/// That subnet `seq` with this content is under a head.
struct SubnetProof {
  std::int64_t seq = 0;
  ProvenTree tree;
  std::string content;  ///< EncodeSubnetContent
  std::vector<Hash256> hashes;
  bool operator==(const SubnetProof&) const = default;
};

/// That the record of `tree` begins with that of `old_tree`, in content and layout.
struct ExtensionProof {
  ProvenTree old_tree;
  ProvenTree tree;
  std::vector<Hash256> content_hashes;
  std::vector<Hash256> layout_hashes;
  bool operator==(const ExtensionProof&) const = default;
};

using Proof = std::variant<SubnetProof, ExtensionProof>;

/// Whether the hashes show what the proof says. It proves nothing before its trees are found in
/// heads that one trusts.
bool Holds(const Proof& proof);

/// Of records' trees. Errors are the sources'. CHECKs that seq or the old tree is within the tree.
Result<SubnetProof> ProveSubnet(std::int64_t seq, std::string content, const ProvenTree& tree,
                                const MerkleSource& content_tree);
Result<ExtensionProof> ProveExtension(const ProvenTree& old_tree, const ProvenTree& tree,
                                      const MerkleSource& content_tree,
                                      const MerkleSource& layout_tree);

/// One JSON object, indented, with a line feed at its end.
std::string ProofToJson(const Proof& proof);
/// kBadInput with line and field where the text is no proof, or of a version that this program does
/// not read; `source` names it.
Result<Proof> ParseProof(std::string_view text, const std::string& source);
/// Likewise of a file; also kBadInput where it cannot be read.
Result<Proof> ReadProof(const std::filesystem::path& path);

}  // namespace verbatim
