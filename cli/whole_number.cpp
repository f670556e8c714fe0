#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "verify/text.h"

namespace verbatim {
namespace {

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  // CLI11 takes such a number for an octal one.
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

// CLI11's own ranges are of doubles, and print the largest of them in full.
CLI::Validator WholeNumber(std::int64_t least, std::int64_t most) {
  const auto problem = [least, most](const std::string& text) -> std::string {
    const auto number = ParseNumber<std::int64_t>(text);
    if (number && *number >= least && *number <= most) return "";
    return fmt::format("'{}' is no whole number from {} to {}", text, FormatCount(least),
                       FormatCount(most));
  };
  return CLI::Validator(problem, "");
}

// CLI11 itself wraps what is negative, and takes what is too large for the largest.
CLI::Validator SeedNumber() {
  const auto problem = [](const std::string& text) -> std::string {
    if (ParseNumber<std::uint64_t>(text)) return "";
    return fmt::format("'{}' is no whole number from 0 to {}", text,
                       std::numeric_limits<std::uint64_t>::max());
  };
  return CLI::Validator(problem, "");
}

}  // namespace verbatim
