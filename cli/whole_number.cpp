#include <fmt/format.h>

#include <charconv>
#include <string>

#include "cli/commands.h"
#include "verify/text.h"

namespace verbatim {

// CLI11's own ranges are of doubles, and print the largest of them in full.
CLI::Validator WholeNumber(std::int64_t least, std::int64_t most) {
  const auto problem = [least, most](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool is_number = error == std::errc() && stop == end;
    if (is_number && number >= least && number <= most) return "";
    return fmt::format("'{}' is no whole number from {} to {}", text, FormatCount(least),
                       FormatCount(most));
  };
  return CLI::Validator(problem, "");
}

}  // namespace verbatim
