// Typed access to the fields of a JSON object, with errors that say line, column and field.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "supernet/json_reader.h"
#include "supernet/nearest_name.h"
#include "supernet/spec_names.h"

namespace verbatim {

/// Keeps the first error of a document, so that reading code need not stop at each field.
class ReadErrors {
 public:
  /// `source` names the document in messages.
  explicit ReadErrors(std::string source) : source_(std::move(source)) {}

  /// "source:line:column: path: what".
  void Report(JsonPosition at, const std::string& path, const std::string& what,
              std::string hint = "");
  const std::optional<Error>& first() const { return first_; }

 private:
  std::string source_;
  std::optional<Error> first_;
};

/// Both ends belong to it.
struct IntegerRange {
  std::int64_t least;
  std::int64_t most;
};

/// least <= value < limit.
struct NumberRange {
  double least = 0.0;
  double limit = std::numeric_limits<double>::infinity();
};

inline constexpr NumberRange kNonNegative{};
inline constexpr NumberRange kFraction{.least = 0.0, .limit = 1.0};

enum class Presence { kOptional, kRequired };

/// One value by itself. Each reports a value of another type or outside its range, and then
/// leaves `*value` alone.
void ReadInteger(const JsonNode& node, const std::string& path, IntegerRange range,
                 std::int64_t* value, ReadErrors* errors);
void ReadNumber(const JsonNode& node, const std::string& path, NumberRange range, double* value,
                ReadErrors* errors);
/// Reports a value of another kind; whether it was this one.
bool ExpectKind(const JsonNode& node, JsonKind kind, const std::string& path, ReadErrors* errors);

template <typename E, std::size_t N>
std::optional<E> ReadName(const JsonNode& node, const std::string& path,
                          const NameTable<E, N>& table, ReadErrors* errors) {
  if (!ExpectKind(node, JsonKind::kString, path, errors)) return std::nullopt;
  for (const auto& [name, value] : table) {
    if (name == node.text) return value;
  }
  errors->Report(node.position, path, "unknown value \"" + node.text + "\"",
                 SuggestName(node.text, NamesOf(table)));
  return std::nullopt;
}

/// Which variant of an object it is, by its member `field`.
template <typename E, std::size_t N>
std::optional<E> ReadVariant(const JsonNode& node, const std::string& path, std::string_view field,
                             const NameTable<E, N>& table, ReadErrors* errors) {
  if (!ExpectKind(node, JsonKind::kObject, path, errors)) return std::nullopt;
  const std::string name_path = path + "." + std::string(field);
  if (const JsonNode* name = node.Find(field)) return ReadName(*name, name_path, table, errors);
  errors->Report(node.position, name_path, "required, but missing",
                 SuggestName("", NamesOf(table)));
  return std::nullopt;
}

/// The fields of one object. An absent optional field leaves its target alone.
class ObjectReader {
 public:
  /// Reports a node that is no object, or a member that is none of `fields`. `path` names the
  /// object in messages ("" for the document); `node` and `errors` outlive the reader.
  ObjectReader(const JsonNode& node, std::string path, std::vector<std::string_view> fields,
               ReadErrors* errors);

  /// The field's value; null where it is absent, which is reported of a required one.
  const JsonNode* Find(std::string_view name, Presence presence = Presence::kOptional) const;
  std::string PathOf(std::string_view name) const;

  void Integer(std::string_view name, IntegerRange range, std::int64_t* value,
               Presence presence = Presence::kOptional) const;
  void Unsigned(std::string_view name, std::uint64_t* value) const;
  void Number(std::string_view name, NumberRange range, double* value,
              Presence presence = Presence::kOptional) const;
  void Boolean(std::string_view name, bool* value) const;
  /// An empty string is reported.
  void String(std::string_view name, std::string* value,
              Presence presence = Presence::kOptional) const;
  template <typename E, std::size_t N>
  void Name(std::string_view name, const NameTable<E, N>& table, E* value,
            Presence presence = Presence::kOptional) const {
    if (const JsonNode* node = Find(name, presence)) {
      if (const auto read = ReadName(*node, PathOf(name), table, errors_)) *value = *read;
    }
  }

 private:
  const JsonNode& node_;
  std::string path_;
  ReadErrors* errors_;
};

}  // namespace verbatim
