#include "supernet/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace verbatim {
namespace {

std::string Join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string Found(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kInteger:
      return fmt::format("{}{}", node.negative ? "-" : "", node.magnitude);
    case JsonKind::kNumber:
      return node.text;
    default:
      return Describe(node.kind);
  }
}

/// Whether the value is an integer; reports it where not.
bool ExpectInteger(const JsonNode& node, const std::string& path, ReadErrors* errors) {
  if (node.kind == JsonKind::kInteger) return true;
  // The parser turns integers beyond 64 bits into floating-point numbers.
  const bool too_large =
      node.kind == JsonKind::kNumber && node.text.find_first_of(".eE") == std::string::npos;
  errors->Report(node.position, path,
                 too_large ? fmt::format("{} does not fit into 64 bits", node.text)
                           : fmt::format("expected an integer, found {}", Found(node)));
  return false;
}

std::string Describe(IntegerRange range) {
  if (range.most - range.least == 1) return fmt::format("{} or {}", range.least, range.most);
  return fmt::format("from {} to {}", range.least, range.most);
}

}  // namespace

void ReadErrors::Report(JsonPosition at, const std::string& path, const std::string& what,
                        std::string hint) {
  if (first_) return;
  first_ = Error{ErrorKind::kBadInput,
                 fmt::format("{}:{}:{}: {}{}{}", source_, at.line, at.column, path,
                             path.empty() ? "" : ": ", what),
                 std::move(hint)};
}

bool ExpectKind(const JsonNode& node, JsonKind kind, const std::string& path, ReadErrors* errors) {
  if (node.kind == kind) return true;
  errors->Report(node.position, path,
                 fmt::format("expected {}, found {}", Describe(kind), Found(node)));
  return false;
}

void ReadInteger(const JsonNode& node, const std::string& path, IntegerRange range,
                 std::int64_t* value, ReadErrors* errors) {
  if (!ExpectInteger(node, path, errors)) return;
  const bool fits = node.magnitude <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const auto magnitude = static_cast<std::int64_t>(fits ? node.magnitude : 0);
  const std::int64_t read = node.negative ? -magnitude : magnitude;
  if (!fits || read < range.least || read > range.most) {
    errors->Report(node.position, path,
                   fmt::format("must be {}, found {}", Describe(range), Found(node)));
    return;
  }
  *value = read;
}

void ReadNumber(const JsonNode& node, const std::string& path, NumberRange range, double* value,
                ReadErrors* errors) {
  if (node.kind != JsonKind::kInteger && !ExpectKind(node, JsonKind::kNumber, path, errors)) return;
  if (node.number >= range.least && node.number < range.limit) {
    // -0 and 0 are equal and must have equal text.
    *value = node.number + 0.0;
    return;
  }
  const std::string allowed =
      range.limit == std::numeric_limits<double>::infinity()
          ? fmt::format("at least {}", range.least)
          : fmt::format("at least {} and below {}", range.least, range.limit);
  errors->Report(node.position, path, fmt::format("must be {}, found {}", allowed, Found(node)));
}

ObjectReader::ObjectReader(const JsonNode& node, std::string path,
                           std::vector<std::string_view> fields, ReadErrors* errors)
    : node_(node), path_(std::move(path)), errors_(errors) {
  if (!ExpectKind(node_, JsonKind::kObject, path_, errors_)) return;
  for (const JsonNode& child : node_.children) {
    if (std::find(fields.begin(), fields.end(), child.key) != fields.end()) continue;
    errors_->Report(child.key_position, PathOf(child.key), "unknown field",
                    SuggestName(child.key, fields));
  }
}

std::string ObjectReader::PathOf(std::string_view name) const {
  return Join(path_, name);
}

const JsonNode* ObjectReader::Find(std::string_view name, Presence presence) const {
  const JsonNode* found = node_.Find(name);
  if (found == nullptr && presence == Presence::kRequired) {
    errors_->Report(node_.position, PathOf(name), "required, but missing",
                    fmt::format("add \"{}\" to the object that starts here", name));
  }
  return found;
}

void ObjectReader::Integer(std::string_view name, IntegerRange range, std::int64_t* value,
                           Presence presence) const {
  if (const JsonNode* node = Find(name, presence)) {
    ReadInteger(*node, PathOf(name), range, value, errors_);
  }
}

void ObjectReader::Unsigned(std::string_view name, std::uint64_t* value) const {
  const JsonNode* node = Find(name);
  if (node == nullptr || !ExpectInteger(*node, PathOf(name), errors_)) return;
  if (node->negative) {
    errors_->Report(node->position, PathOf(name),
                    fmt::format("must be at least 0, found {}", Found(*node)));
    return;
  }
  *value = node->magnitude;
}

void ObjectReader::Number(std::string_view name, NumberRange range, double* value,
                          Presence presence) const {
  if (const JsonNode* node = Find(name, presence)) {
    ReadNumber(*node, PathOf(name), range, value, errors_);
  }
}

void ObjectReader::Boolean(std::string_view name, bool* value) const {
  const JsonNode* node = Find(name);
  if (node != nullptr && ExpectKind(*node, JsonKind::kBoolean, PathOf(name), errors_)) {
    *value = node->boolean;
  }
}

void ObjectReader::String(std::string_view name, std::string* value, Presence presence) const {
  const JsonNode* node = Find(name, presence);
  if (node == nullptr || !ExpectKind(*node, JsonKind::kString, PathOf(name), errors_)) return;
  if (node->text.empty()) errors_->Report(node->position, PathOf(name), "must not be empty");
  *value = node->text;
}

}  // namespace verbatim
