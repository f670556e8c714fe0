// The name that was probably meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// Damerau–Levenshtein distance in its restricted form (optimal string alignment): insertions,
/// deletions, substitutions and swaps of neighbours, in bytes.
std::size_t EditDistance(std::string_view a, std::string_view b);

/// "did you mean \"kernel\"?" where a name is near: within a third of its length, but 1 to 3. Else
/// "allowed: a, b, c".
std::string SuggestName(std::string_view written, const std::vector<std::string_view>& names);

}  // namespace verbatim
