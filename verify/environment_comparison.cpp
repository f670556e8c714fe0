#include "verify/environment_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "supernet/numeric_profile.h"

namespace verbatim {
namespace {

constexpr std::string_view kInstructionSets = "cpu.instruction_sets";
constexpr std::array<std::string_view, 5> kProcessorKeys = {
    "cpu.vendor", "cpu.model", "cpu.family_model", "cpu.stepping", kInstructionSets};

const EnvironmentRow* FindFact(const std::vector<EnvironmentRow>& rows, const std::string& key) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const EnvironmentRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool IsNumericDifference(const EnvironmentRow& recorded, const EnvironmentRow& here,
                         Numerics numerics) {
  if (recorded.key == kInstructionSets && numerics != Numerics::kNative) {
    return !MissingInstructionSets(numerics, Words(recorded.value)).empty() ||
           !MissingInstructionSets(numerics, Words(here.value)).empty();
  }
  return IsNumericKey(recorded.key, numerics);
}

/// Words of `text` that `other` lacks; "none" where there is no such word.
std::string OnlyIn(const std::string& text, const std::string& other) {
  const std::vector<std::string> others = Words(other);
  std::string only;
  for (const std::string& word : Words(text)) {
    if (std::find(others.begin(), others.end(), word) != others.end()) continue;
    only += (only.empty() ? "" : " ") + word;
  }
  return only.empty() ? "none" : only;
}

std::string ValueText(const std::string& value) {
  return value.empty() ? "nothing" : value;
}

}  // namespace

Numerics ProfileOf(const RunInfo& run) {
  const auto spec = ParseSpec(run.spec_json, "the recorded spec");
  return spec ? spec->numerics : Numerics::kNative;
}

bool IsNumericKey(std::string_view key, Numerics numerics) {
  if (key.substr(0, 5) == "info.") return false;
  return numerics == Numerics::kNative ||
         std::find(kProcessorKeys.begin(), kProcessorKeys.end(), key) == kProcessorKeys.end();
}

std::vector<EnvironmentDifference> CompareEnvironments(const std::vector<EnvironmentRow>& recorded,
                                                       const std::vector<EnvironmentRow>& here,
                                                       Numerics numerics) {
  std::vector<EnvironmentDifference> differences;
  for (const EnvironmentRow& row : recorded) {
    const EnvironmentRow* other = FindFact(here, row.key);
    if (other == nullptr) {
      differences.push_back({row.key, row.value, "", false});
    } else if (other->value != row.value) {
      differences.push_back(
          {row.key, row.value, other->value, IsNumericDifference(row, *other, numerics)});
    }
  }
  for (const EnvironmentRow& row : here) {
    if (FindFact(recorded, row.key) != nullptr) continue;
    differences.push_back({row.key, "", row.value, false});
  }
  return differences;
}

std::string DescribeDifference(const EnvironmentDifference& difference) {
  if (difference.key == kInstructionSets) {
    return fmt::format("{}: only recorded {}, only here {}", difference.key,
                       OnlyIn(difference.recorded, difference.here),
                       OnlyIn(difference.here, difference.recorded));
  }
  return fmt::format("{}: recorded {}, here {}", difference.key, ValueText(difference.recorded),
                     ValueText(difference.here));
}

std::optional<Error> EnvironmentRefusal(const std::vector<EnvironmentDifference>& differences) {
  std::string facts;
  for (const EnvironmentDifference& difference : differences) {
    if (difference.numeric) facts += "\n  " + DescribeDifference(difference);
  }
  if (facts.empty()) return std::nullopt;
  return Error{ErrorKind::kFailed,
               "the numeric environment differs from the recorded one, so equal bits cannot be "
               "expected here:" +
                   facts,
               "Re-execute where these facts agree; --any-environment compares nevertheless. For "
               "runs that\nprocessors of several kinds verify, set \"numerics\" in the spec."};
}

}  // namespace verbatim
