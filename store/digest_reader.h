// Digests in a JSON document: strings of 32 hexadecimal digits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "supernet/object_reader.h"

namespace verbatim {

/// Nothing, and reported, where the node is another string or none.
std::optional<Digest> ReadDigest(const JsonNode& node, const std::string& path, ReadErrors* errors);
/// Of an array; leaves out those that are reported.
std::vector<Digest> ReadDigests(const JsonNode& node, const std::string& path, ReadErrors* errors);

}  // namespace verbatim
