#include "store/proof.h"

#include <fmt/format.h>

#include <span>

#include "base/check.h"
#include "base/hex.h"
#include "store/evidence_json.h"
#include "store/format.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

constexpr std::string_view kFormat = "verbatim-proof";
constexpr std::int64_t kVersion = 1;

enum class ProofKind { kSubnet, kExtension };
constexpr NameTable<ProofKind, 2> kKindNames{
    {{"subnet", ProofKind::kSubnet}, {"extension", ProofKind::kExtension}}};

bool Holds(const SubnetProof& proof) {
  return VerifyInclusion(LeafHash(proof.content), proof.seq, proof.tree.subnets, proof.hashes,
                         proof.tree.content_root);
}

bool Holds(const ExtensionProof& proof) {
  const ProvenTree& before = proof.old_tree;
  const ProvenTree& after = proof.tree;
  return VerifyConsistency(before.subnets, before.content_root, after.subnets, after.content_root,
                           proof.content_hashes) &&
         VerifyConsistency(before.subnets, before.layout_root, after.subnets, after.layout_root,
                           proof.layout_hashes);
}

std::string TreeJson(const ProvenTree& tree) {
  return fmt::format(R"({{"subnets": {}, "content_root": "{}", "layout_root": "{}"}})",
                     tree.subnets, ToHex(tree.content_root), ToHex(tree.layout_root));
}

std::string HashesJson(const std::vector<Hash256>& hashes) {
  std::string text = "[";
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    text += fmt::format("{}\n    \"{}\"", i == 0 ? "" : ",", ToHex(hashes[i]));
  }
  return text + (hashes.empty() ? "]" : "\n  ]");
}

std::string FieldsJson(const SubnetProof& proof) {
  const std::span content(reinterpret_cast<const std::uint8_t*>(proof.content.data()),
                          proof.content.size());
  return fmt::format(
      "  \"kind\": \"subnet\",\n  \"tree\": {},\n  \"subnet\": {},\n  \"content\": \"{}\",\n"
      "  \"hashes\": {}\n",
      TreeJson(proof.tree), proof.seq, BytesToHex(content), HashesJson(proof.hashes));
}

std::string FieldsJson(const ExtensionProof& proof) {
  return fmt::format(
      "  \"kind\": \"extension\",\n  \"old_tree\": {},\n  \"tree\": {},\n"
      "  \"content_hashes\": {},\n  \"layout_hashes\": {}\n",
      TreeJson(proof.old_tree), TreeJson(proof.tree), HashesJson(proof.content_hashes),
      HashesJson(proof.layout_hashes));
}

ProvenTree ReadTree(const ObjectReader& parent, std::string_view name, ReadErrors* errors) {
  ProvenTree tree;
  const JsonNode* node = parent.Find(name, Presence::kRequired);
  if (node == nullptr) return tree;
  const ObjectReader object(*node, parent.PathOf(name), {"subnets", "content_root", "layout_root"},
                            errors);
  object.Integer("subnets", {0, kSeqMax + 1}, &tree.subnets, Presence::kRequired);
  ReadBytes(object, "content_root", tree.content_root.bytes, errors);
  ReadBytes(object, "layout_root", tree.layout_root.bytes, errors);
  return tree;
}

SubnetProof ReadSubnetProof(const JsonNode& node, ReadErrors* errors) {
  const ObjectReader object(
      node, "", {"format", "version", "kind", "tree", "subnet", "content", "hashes"}, errors);
  SubnetProof proof;
  proof.tree = ReadTree(object, "tree", errors);
  object.Integer("subnet", {0, kSeqMax}, &proof.seq, Presence::kRequired);
  proof.content = ReadBytes(object, "content", errors);
  proof.hashes = ReadHashes(object, "hashes", errors);
  return proof;
}

ExtensionProof ReadExtensionProof(const JsonNode& node, ReadErrors* errors) {
  const ObjectReader object(
      node, "",
      {"format", "version", "kind", "old_tree", "tree", "content_hashes", "layout_hashes"}, errors);
  ExtensionProof proof;
  proof.old_tree = ReadTree(object, "old_tree", errors);
  proof.tree = ReadTree(object, "tree", errors);
  proof.content_hashes = ReadHashes(object, "content_hashes", errors);
  proof.layout_hashes = ReadHashes(object, "layout_hashes", errors);
  return proof;
}

}  // namespace

ProvenTree TreeOf(const Head& head) {
  return {head.subnets, head.content_root, head.layout_root};
}

bool Holds(const Proof& proof) {
  return std::visit([](const auto& kind) { return Holds(kind); }, proof);
}

Result<SubnetProof> ProveSubnet(std::int64_t seq, std::string content, const ProvenTree& tree,
                                const MerkleSource& content_tree) {
  ASSIGN_OR_RETURN(auto hashes, InclusionProof(seq, tree.subnets, content_tree));
  return SubnetProof{seq, tree, std::move(content), std::move(hashes)};
}

Result<ExtensionProof> ProveExtension(const ProvenTree& old_tree, const ProvenTree& tree,
                                      const MerkleSource& content_tree,
                                      const MerkleSource& layout_tree) {
  ASSIGN_OR_RETURN(auto content, ConsistencyProof(old_tree.subnets, tree.subnets, content_tree));
  ASSIGN_OR_RETURN(auto layout, ConsistencyProof(old_tree.subnets, tree.subnets, layout_tree));
  return ExtensionProof{old_tree, tree, std::move(content), std::move(layout)};
}

std::string ProofToJson(const Proof& proof) {
  const std::string fields = std::visit([](const auto& kind) { return FieldsJson(kind); }, proof);
  return fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n{}}}\n", kFormat, kVersion,
                     fields);
}

Result<Proof> ParseProof(std::string_view text, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseJson(text, source));
  RETURN_IF_ERROR(CheckFormat(node, kFormat, kVersion, "proof", source));
  ReadErrors errors(source);
  Proof proof;
  const JsonNode* kind = node.Find("kind");
  if (kind == nullptr) {
    errors.Report(node.position, "kind", "required, but missing");
  } else if (const auto named = ReadName(*kind, "kind", kKindNames, &errors)) {
    if (*named == ProofKind::kSubnet) proof = ReadSubnetProof(node, &errors);
    if (*named == ProofKind::kExtension) proof = ReadExtensionProof(node, &errors);
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  return proof;
}

Result<Proof> ReadProof(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ReadTextFile(path, "the proof", "verbatim show RUN.db --subnet K --proof FILE writes one."));
  return ParseProof(text, path.string());
}

}  // namespace verbatim
