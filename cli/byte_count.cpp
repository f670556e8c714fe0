#include "cli/byte_count.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "verify/text.h"

namespace verbatim {
namespace {

constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"", 1},
                                                                {"KiB", std::int64_t{1} << 10},
                                                                {"MiB", std::int64_t{1} << 20},
                                                                {"GiB", std::int64_t{1} << 30}};

std::optional<std::int64_t> ParseByteCount(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  // CLI11 takes a number that begins with a zero for an octal one.
  if (error != std::errc() || (text.front() == '0' && stop != text.data() + 1)) return std::nullopt;
  const std::string_view suffix(stop, static_cast<std::size_t>(end - stop));
  for (const auto& [unit, bytes] : kUnits) {
    if (suffix != unit) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / bytes) return std::nullopt;
    return number * bytes;
  }
  return std::nullopt;
}

}  // namespace

CLI::Validator ByteCount(std::int64_t least) {
  const auto parse = [least](std::string& text) -> std::string {
    const auto bytes = ParseByteCount(text);
    if (!bytes || *bytes < least) {
      return fmt::format("'{}' is no number of bytes from {}, such as 67108864 or 64MiB", text,
                         FormatCount(least));
    }
    text = std::to_string(*bytes);
    return "";
  };
  return CLI::Validator(parse, "", "BYTES");
}

}  // namespace verbatim
