#include "verify/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace verbatim {
namespace {

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Three octal digits end by themselves, whatever follows.
std::string EscapedWord(std::string_view text) {
  std::string word = "$'";
  for (const char c : text) {
    if (c == '\n') {
      word += "\\n";
    } else if (IsControl(c)) {
      word += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else if (c == '\'' || c == '\\') {
      word += fmt::format("\\{}", c);
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace

std::string FormatCount(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string FormatCount(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", FormatCount(count), count == 1 ? one : many);
}

float LossFromBits(std::uint32_t loss_bits) {
  return std::bit_cast<float>(loss_bits);
}

std::string FormatNumber(double value, int digits) {
  return std::isnan(value) ? "NaN" : fmt::format("{:.{}g}", value, digits);
}

std::string FormatLoss(std::uint32_t loss_bits) {
  return fmt::format("{} (bits 0x{:08x})", FormatNumber(LossFromBits(loss_bits), 9), loss_bits);
}

std::string FormatVersion(std::int64_t seq) {
  return seq < 0 ? "the initial weights" : fmt::format("version {}", seq);
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  if (std::any_of(text.begin(), text.end(), IsControl)) return EscapedWord(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

std::string ShellPath(std::string_view path) {
  return ShellWord(path.starts_with('-') ? fmt::format("./{}", path) : std::string(path));
}

}  // namespace verbatim
