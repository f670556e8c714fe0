// Reading the JSON of heads and proofs: hexadecimal fields, and the format's name and version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash256.h"
#include "base/status.h"
#include "supernet/object_reader.h"

namespace verbatim {

/// Refuses a value that is no object with `"format": format, "version": version`; `what` names it
/// in messages ("a head"). Fields of another version are not looked at.
Status CheckFormat(const JsonNode& node, std::string_view format, std::int64_t version,
                   const std::string& what, const std::string& source);

/// A required field of exactly that many bytes, in lower-case hexadecimal digits.
void ReadBytes(const ObjectReader& object, std::string_view name, std::span<std::uint8_t> bytes,
               ReadErrors* errors);
/// A required field of any number of bytes.
std::string ReadBytes(const ObjectReader& object, std::string_view name, ReadErrors* errors);
/// A required list of hashes.
std::vector<Hash256> ReadHashes(const ObjectReader& object, std::string_view name,
                                ReadErrors* errors);

}  // namespace verbatim
