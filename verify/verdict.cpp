#include "verify/verdict.h"

#include <limits>
#include <utility>

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

const char* ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kNotRun:
      return "not run";
  }
  return "not run";
}

bool IsEarlier(const Difference& left, const Difference& right) {
  const auto place = [](const Difference& difference) {
    const std::int64_t outside =
        difference.after_last ? std::numeric_limits<std::int64_t>::max() : std::int64_t{-1};
    return difference.seq.value_or(outside);
  };
  return place(left) < place(right);
}

Check PassedCheck(std::string name, std::string detail) {
  Check check;
  check.name = std::move(name);
  check.outcome = Outcome::kPassed;
  check.detail = std::move(detail);
  return check;
}

void AddProblem(Check& check, std::string problem) {
  check.outcome = Outcome::kFailed;
  ++check.problem_count;
  if (check.problems.size() < kProblemsShown) check.problems.push_back(std::move(problem));
}

void AddDamage(Check& check, std::string problem) {
  AddProblem(check, std::move(problem));
  check.damage = true;
}

}  // namespace verbatim
