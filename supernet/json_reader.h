// JSON text as a tree in which every value knows its place, so that an error can point at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// Deepest nesting of arrays and objects that is read: a spec needs six.
inline constexpr int kMaxJsonDepth = 64;

/// A place in a text, counted from 1. Columns count characters (code points).
struct JsonPosition {
  int line = 1;
  int column = 1;
};

enum class JsonKind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

/// "a boolean", "an integer", … for messages.
const char* Describe(JsonKind kind);

struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  JsonPosition position;
  std::string key;            ///< its name, where it is a member of an object
  JsonPosition key_position;  ///< likewise
  bool boolean = false;
  bool negative = false;           ///< kInteger: below zero
  std::uint64_t magnitude = 0;     ///< kInteger: absolute value
  double number = 0.0;             ///< kInteger (rounded) and kNumber; always finite
  std::string text;                ///< kString: its value. kNumber: as written
  std::vector<JsonNode> children;  ///< kArray, kObject: in the order of the text

  /// The member named `name` of an object; null where there is none.
  const JsonNode* Find(std::string_view name) const;
};

/// Reads one JSON value (RFC 8259, UTF-8). BadInput "source:line:column: …" where the text is
/// malformed, repeats a key within an object, holds a number beyond float64 or nests too deeply. In
/// the source the text begins at the beginning of `first_line`.
Result<JsonNode> ParseJson(std::string_view text, const std::string& source, int first_line = 1);

}  // namespace verbatim
