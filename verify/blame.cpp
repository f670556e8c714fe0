#include "verify/blame.h"

#include <fmt/format.h>

namespace verbatim {
namespace {

bool IsNumbers(const Difference& difference) {
  return difference.kind == DifferenceClass::kComputation ||
         difference.kind == DifferenceClass::kInitialWeights ||
         difference.kind == DifferenceClass::kBatchBytes;
}

void Append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

}  // namespace

void BlameEnvironment(const std::vector<EnvironmentDifference>& environment,
                      Difference& difference) {
  std::string keys;
  for (const EnvironmentDifference& fact : environment) {
    if (fact.numeric) Append(keys, fact.key);
  }
  if (keys.empty() || !IsNumbers(difference) || difference.what == "data set") return;
  difference.kind = DifferenceClass::kEnvironment;
  difference.cause = fmt::format(
      "the numeric environments differ ({}), so this says nothing of the run itself; {}", keys,
      difference.cause);
}

void BlameSpec(const std::vector<SettingDifference>& fields, bool are_causal,
               Difference& difference) {
  const bool is_excepted = difference.kind == DifferenceClass::kSchedule && !are_causal;
  if (fields.empty() || is_excepted) return;
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < fields.size() && i < kNamed; ++i) Append(names, fields[i].key);
  if (fields.size() > kNamed) Append(names, "…");
  difference.kind = DifferenceClass::kSpec;
  difference.cause = fmt::format("the specs differ ({}), so equal results were not asked for; {}",
                                 names, difference.cause);
}

void BlameSchedule(const std::optional<Difference>& violation, std::int64_t in_flight,
                   Difference& difference) {
  if (!violation || violation->kind != DifferenceClass::kSchedule || !violation->seq ||
      !difference.seq || difference.kind != DifferenceClass::kComputation ||
      *violation->seq - *difference.seq > in_flight) {
    return;
  }
  difference.kind = DifferenceClass::kSchedule;
  difference.cause =
      fmt::format("subnets that were in flight together broke causality: {}", violation->cause);
  difference.next_command = violation->next_command;
}

}  // namespace verbatim
