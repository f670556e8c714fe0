#include "verify/difference.h"

#include <limits>

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
    case DifferenceClass::kInitialWeights:
      return "initial weights";
    case DifferenceClass::kSchedule:
      return "schedule";
    case DifferenceClass::kComputation:
      return "computation";
  }
  return "computation";
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
