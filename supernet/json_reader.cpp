#include "supernet/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace verbatim {
namespace {

bool IsOneOf(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

/// Follows the parser through the text. nlohmann-json tells neither where a value starts nor how
/// long it is, so that each token is passed over here a second time.
class Cursor {
 public:
  Cursor(std::string_view text, int first_line) : text_(text), position_{first_line, 1} {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = marked_ = 3;
  }

  /// Place of the next token, after white space and separators.
  JsonPosition Next() {
    SkipAll(" \t\r\n,:");
    return PositionOf(offset_);
  }
  void PassCharacters(std::size_t count) { offset_ = std::min(offset_ + count, text_.size()); }
  void PassNumber() { SkipAll("+-.0123456789eE"); }
  void PassString() {
    for (++offset_; offset_ < text_.size() && text_[offset_] != '"'; ++offset_) {
      if (text_[offset_] == '\\') ++offset_;
    }
    PassCharacters(1);
  }
  /// Place of a byte. Offsets never decrease from one call to the next.
  JsonPosition PositionOf(std::size_t offset) {
    for (; marked_ < std::min(offset, text_.size()); ++marked_) {
      const auto byte = static_cast<unsigned char>(text_[marked_]);
      if (byte == '\n') {
        position_ = {position_.line + 1, 1};
      } else if ((byte & 0xc0) != 0x80) {
        ++position_.column;
      }
    }
    return position_;
  }
  /// Where the parser stopped: the token it did not like, but never past the byte it read last.
  JsonPosition StoppedAt(std::size_t bytes_read) {
    SkipAll(" \t\r\n,:");
    return PositionOf(std::min(offset_, std::max(bytes_read, marked_ + 1) - 1));
  }

 private:
  void SkipAll(std::string_view set) {
    while (offset_ < text_.size() && IsOneOf(text_[offset_], set)) ++offset_;
  }

  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t marked_ = 0;  ///< position_ is this byte's
  JsonPosition position_;
};

/// The part of a library message that says what is wrong: without its class, number and place.
std::string WhatIsWrong(const std::string& message) {
  const std::size_t column = message.find(", column ");
  const std::size_t from = column == std::string::npos ? message.find("] ") : column;
  const std::size_t start = message.find(column == std::string::npos ? "] " : ": ", from);
  return start == std::string::npos ? message : message.substr(start + 2);
}

class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const std::string& source, int first_line)
      : cursor_(text, first_line), source_(source) {}

  Result<JsonNode> Take() {
    if (error_) return tl::unexpected(*std::move(error_));
    return std::move(root_);
  }

  bool null() override {
    Add(JsonKind::kNull);
    cursor_.PassCharacters(4);
    return true;
  }
  bool boolean(bool value) override {
    Add(JsonKind::kBoolean).boolean = value;
    cursor_.PassCharacters(value ? 4 : 5);
    return true;
  }
  bool number_integer(number_integer_t value) override {
    return Integer(value < 0, value < 0 ? ~static_cast<std::uint64_t>(value) + 1
                                        : static_cast<std::uint64_t>(value));
  }
  bool number_unsigned(number_unsigned_t value) override { return Integer(false, value); }
  bool number_float(number_float_t value, const string_t& text) override {
    JsonNode& node = Add(JsonKind::kNumber);
    node.number = value;
    node.text = text;
    cursor_.PassNumber();
    return true;
  }
  bool string(string_t& value) override {
    Add(JsonKind::kString).text = value;
    cursor_.PassString();
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(JsonKind::kObject); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(JsonKind::kArray); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    key_position_ = cursor_.Next();
    key_ = value;
    cursor_.PassString();
    const JsonNode* earlier = open_.back()->Find(value);
    if (earlier == nullptr) return true;
    return Fail(
        key_position_,
        fmt::format("\"{}\" is given twice, first in line {}", value, earlier->key_position.line),
        "remove one of the two");
  }
  bool parse_error(std::size_t bytes_read, const std::string&,
                   const nlohmann::detail::exception& error) override {
    return Fail(cursor_.StoppedAt(bytes_read), WhatIsWrong(error.what()),
                "the file must be one JSON value");
  }

 private:
  bool Fail(JsonPosition at, const std::string& what, const std::string& hint) {
    error_ = Error{ErrorKind::kBadInput,
                   fmt::format("{}:{}:{}: {}", source_, at.line, at.column, what), hint};
    return false;
  }

  JsonNode& Add(JsonKind kind) {
    JsonNode& node = open_.empty() ? root_ : open_.back()->children.emplace_back();
    node.kind = kind;
    node.position = cursor_.Next();
    if (!open_.empty() && open_.back()->kind == JsonKind::kObject) {
      node.key = key_;
      node.key_position = key_position_;
    }
    return node;
  }

  bool Integer(bool negative, std::uint64_t magnitude) {
    JsonNode& node = Add(JsonKind::kInteger);
    node.negative = negative;
    node.magnitude = magnitude;
    node.number = static_cast<double>(magnitude) * (negative ? -1.0 : 1.0);
    cursor_.PassNumber();
    return true;
  }

  bool Open(JsonKind kind) {
    JsonNode& node = Add(kind);
    cursor_.PassCharacters(1);
    if (open_.size() == kMaxJsonDepth) {
      return Fail(node.position, fmt::format("nested more than {} deep", kMaxJsonDepth), "");
    }
    // The pointer stays valid: a list only grows while it is the innermost open one.
    open_.push_back(&node);
    return true;
  }

  bool Close() {
    cursor_.Next();
    cursor_.PassCharacters(1);
    open_.pop_back();
    return true;
  }

  Cursor cursor_;
  const std::string& source_;
  JsonNode root_;
  std::vector<JsonNode*> open_;
  std::string key_;
  JsonPosition key_position_;
  std::optional<Error> error_;
};

}  // namespace

const char* Describe(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return "a boolean";
    case JsonKind::kInteger:
      return "an integer";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "a list";
    case JsonKind::kObject:
      return "an object";
  }
  return "a value";
}

const JsonNode* JsonNode::Find(std::string_view name) const {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const JsonNode& child) { return child.key == name; });
  return kind == JsonKind::kObject && found != children.end() ? &*found : nullptr;
}

Result<JsonNode> ParseJson(std::string_view text, const std::string& source, int first_line) {
  TreeBuilder builder(text, source, first_line);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.Take();
}

}  // namespace verbatim
