#include "supernet/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string SuggestName(std::string_view written, const std::vector<std::string_view>& names) {
  // Nothing long is near a name, and its distance would be dear.
  constexpr std::size_t kLongest = 64;
  std::string_view nearest;
  std::size_t nearest_distance = kLongest;
  if (written.size() <= kLongest) {
    for (const std::string_view name : names) {
      const std::size_t distance = EditDistance(written, name);
      const std::size_t limit = std::clamp<std::size_t>(name.size() / 3, 1, 3);
      if (distance <= limit && distance < nearest_distance) {
        nearest = name;
        nearest_distance = distance;
      }
    }
  }
  if (!nearest.empty()) return fmt::format("did you mean \"{}\"?", nearest);
  return names.empty() ? "no field is allowed here"
                       : fmt::format("allowed: {}", fmt::join(names, ", "));
}

}  // namespace verbatim
