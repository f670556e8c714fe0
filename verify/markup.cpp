#include "verify/markup.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verbatim {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD in UTF-8
constexpr std::string_view kMarkdownMarks = "\\`*_[]|~#";

/// What XML 1.0 calls no character (section 2.2), apart from what ValidUtf8 has replaced: most
/// controls, U+FFFE and U+FFFF.
std::string OnlyXmlCharacters(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view three = text.substr(i, 3);
    if (three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf") {
      kept += kReplacement;
      i += 2;
    } else if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') {
      kept += kReplacement;
    } else {
      kept += text[i];
    }
  }
  return kept;
}

/// The entity that stands for a character which XML and HTML reserve; null for any other.
const char* EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    default:
      return nullptr;
  }
}

std::string OnOneLine(std::string_view text) {
  std::string line = ValidUtf8(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  using nlohmann::json;
  // The library's own replacement, which a round trip through JSON text brings out.
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (const char c : OnlyXmlCharacters(ValidUtf8(text))) {
    if (const char* entity = EntityOf(c)) {
      escaped += entity;
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string EscapeMarkdown(std::string_view text) {
  std::string escaped;
  for (const char c : OnOneLine(text)) {
    if (const char* entity = EntityOf(c)) {
      escaped += entity;
    } else {
      if (kMarkdownMarks.find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string MarkdownCode(std::string_view text) {
  // A code span in backticks can escape neither a backtick nor the bar of a table; HTML can.
  std::string escaped = "<code>";
  for (const char c : EscapeXml(OnOneLine(text))) {
    if (kMarkdownMarks.find(c) == std::string_view::npos) {
      escaped += c;
    } else {
      escaped += fmt::format("&#{};", static_cast<int>(c));
    }
  }
  return escaped + "</code>";
}

}  // namespace verbatim
