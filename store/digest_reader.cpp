#include "store/digest_reader.h"

namespace verbatim {

std::optional<Digest> ReadDigest(const JsonNode& node, const std::string& path,
                                 ReadErrors* errors) {
  if (!ExpectKind(node, JsonKind::kString, path, errors)) return std::nullopt;
  auto digest = DigestFromHex(node.text);
  if (!digest) errors->Report(node.position, path, "expected 32 hexadecimal digits");
  return digest;
}

std::vector<Digest> ReadDigests(const JsonNode& node, const std::string& path, ReadErrors* errors) {
  std::vector<Digest> digests;
  if (!ExpectKind(node, JsonKind::kArray, path, errors)) return digests;
  for (const JsonNode& child : node.children) {
    if (const auto digest = ReadDigest(child, path, errors)) digests.push_back(*digest);
  }
  return digests;
}

}  // namespace verbatim
