#include "verify/verdict.h"

#include <utility>

namespace verbatim {

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
