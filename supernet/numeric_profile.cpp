#include "supernet/numeric_profile.h"

#include <algorithm>

namespace verbatim {

const std::vector<std::string_view>& RequiredInstructionSets(Numerics numerics) {
  static const std::vector<std::string_view> native;
  static const std::vector<std::string_view> v3 = {"sse3",  "ssse3", "sse4.1", "sse4.2", "popcnt",
                                                   "movbe", "lzcnt", "bmi1",   "bmi2",   "avx",
                                                   "f16c",  "fma",   "avx2"};
  static const std::vector<std::string_view> baseline = {"sse3", "ssse3", "sse4.1"};
  switch (numerics) {
    case Numerics::kNative:
      return native;
    case Numerics::kX8664V3:
      return v3;
    case Numerics::kX8664:
      return baseline;
  }
  return native;
}

std::vector<std::string> MissingInstructionSets(Numerics numerics,
                                                const std::vector<std::string>& available) {
  std::vector<std::string> missing;
  for (const std::string_view name : RequiredInstructionSets(numerics)) {
    if (std::find(available.begin(), available.end(), name) == available.end()) {
      missing.emplace_back(name);
    }
  }
  return missing;
}

}  // namespace verbatim
