#include "verify/difference.h"

#include <fmt/format.h>

#include <limits>

#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {

const char* ToString(DifferenceClass kind) {
  switch (kind) {
    case DifferenceClass::kEnvironment:
      return "environment";
    case DifferenceClass::kSpec:
      return "spec";
    case DifferenceClass::kSampleOrder:
      return "sample order";
    case DifferenceClass::kBatchBytes:
      return "batch bytes";
    case DifferenceClass::kSettings:
      return "hyper-parameters";
    case DifferenceClass::kRandomState:
      return "random state";
    case DifferenceClass::kInitialWeights:
      return "initial weights";
    case DifferenceClass::kSchedule:
      return "schedule";
    case DifferenceClass::kComputation:
      return "computation";
    case DifferenceClass::kForged:
      return "damaged or forged";
  }
  return "computation";
}

std::string ShowCommand(const std::string& path, const Difference& difference) {
  const std::string command = fmt::format("verbatim show {}", ShellPath(path));
  if (difference.kind == DifferenceClass::kSchedule) {
    return fmt::format("{} --layer {}", command, ShellWord(difference.layer_name));
  }
  if (!difference.seq) return command;
  return fmt::format("{} --{} {}", command, WordsOf(difference.run).one, *difference.seq);
}

bool IsEarlier(const Difference& left, const Difference& right) {
  const auto place = [](const Difference& difference) {
    const std::int64_t outside =
        difference.after_last ? std::numeric_limits<std::int64_t>::max() : std::int64_t{-1};
    return difference.seq.value_or(outside);
  };
  return place(left) < place(right);
}

}  // namespace verbatim
