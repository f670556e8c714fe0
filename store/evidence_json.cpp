#include "store/evidence_json.h"

#include <fmt/format.h>

#include "base/hex.h"

namespace verbatim {
namespace {

/// False, and reported, where the node is no text of that many bytes.
bool BytesFromNode(const JsonNode& node, const std::string& path, std::span<std::uint8_t> bytes,
                   ReadErrors* errors) {
  if (!ExpectKind(node, JsonKind::kString, path, errors)) return false;
  // One spelling only: what differs in a file of heads differs in a head.
  if (BytesFromHex(node.text, bytes) && BytesToHex(bytes) == node.text) return true;
  errors->Report(node.position, path,
                 fmt::format("must be {} lower-case hexadecimal digits", 2 * bytes.size()));
  return false;
}

}  // namespace

Status CheckFormat(const JsonNode& node, std::string_view format, std::int64_t version,
                   const std::string& what, const std::string& source) {
  ReadErrors errors(source);
  const JsonNode* name = node.Find("format");
  const JsonNode* number = node.Find("version");
  if (name == nullptr || name->text != format || number == nullptr) {
    errors.Report(node.position, "", fmt::format("is no {}", what),
                  fmt::format("{} has \"format\": \"{}\" and a \"version\"", what, format));
    return tl::unexpected(*errors.first());
  }
  std::int64_t found = 0;
  ReadInteger(*number, "version", {1, INT32_MAX}, &found, &errors);
  if (!errors.first() && found != version) {
    errors.Report(number->position, "version",
                  fmt::format("this {} is of version {}, but this program reads version {}", what,
                              found, version),
                  "use the program that wrote it, or a newer one");
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  return {};
}

void ReadBytes(const ObjectReader& object, std::string_view name, std::span<std::uint8_t> bytes,
               ReadErrors* errors) {
  const JsonNode* node = object.Find(name, Presence::kRequired);
  if (node != nullptr) BytesFromNode(*node, object.PathOf(name), bytes, errors);
}

std::string ReadBytes(const ObjectReader& object, std::string_view name, ReadErrors* errors) {
  const JsonNode* node = object.Find(name, Presence::kRequired);
  if (node == nullptr) return "";
  const std::string path = object.PathOf(name);
  if (!ExpectKind(*node, JsonKind::kString, path, errors)) return "";
  if (node->text.size() % 2 != 0) {
    errors->Report(node->position, path, "has an odd number of hexadecimal digits");
    return "";
  }
  std::vector<std::uint8_t> bytes(node->text.size() / 2);
  if (!BytesFromNode(*node, path, bytes, errors)) return "";
  return {bytes.begin(), bytes.end()};
}

std::vector<Hash256> ReadHashes(const ObjectReader& object, std::string_view name,
                                ReadErrors* errors) {
  std::vector<Hash256> hashes;
  const JsonNode* list = object.Find(name, Presence::kRequired);
  if (list == nullptr || !ExpectKind(*list, JsonKind::kArray, object.PathOf(name), errors)) {
    return hashes;
  }
  for (const JsonNode& node : list->children) {
    const std::string path = fmt::format("{}[{}]", object.PathOf(name), hashes.size());
    if (!BytesFromNode(node, path, hashes.emplace_back().bytes, errors)) break;
  }
  return hashes;
}

}  // namespace verbatim
