#include "verify/against.h"

#include <fmt/format.h>

#include <utility>

#include "verify/diff.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What is wrong with the first check that failed for damage.
std::string FirstProblem(const Verdict& verdict) {
  for (const Check& check : verdict.checks) {
    if (check.damage && !check.problems.empty()) return check.problems.front();
  }
  return "it cannot be read";
}

Check ReferenceCheck(const Verdict& diff, const std::string& reference_path) {
  Check check = PassedCheck(kCheckReference);
  if (diff.comparison) {
    check.detail =
        fmt::format("{} of {} equal to {}", FormatCount(diff.comparison->subnets_equal),
                    CountRows(diff.comparison->subnets_compared, diff.run.kind), reference_path);
  }
  if (diff.first_difference) {
    AddProblem(check, fmt::format("{} differs: {}", diff.first_difference->what,
                                  diff.first_difference->cause));
  }
  return check;
}

}  // namespace

Status CompareAgainst(const RecordReader& reader, const RecordReader& reference,
                      const std::string& reference_path,
                      const std::function<void(std::int64_t)>& progress, Verdict& verdict,
                      const StepDiffOptions& steps) {
  ASSIGN_OR_RETURN(Verdict diff, CompareRecords(reader, verdict.record, reference, reference_path,
                                                progress, steps));
  if (diff.damaged) {
    return BadInput(fmt::format("{} is damaged: {}", reference_path, FirstProblem(diff)),
                    fmt::format("verbatim verify {} tells more.", ShellPath(reference_path)));
  }
  verdict.reference = reference_path;
  verdict.checks.push_back(ReferenceCheck(diff, reference_path));
  verdict.spec_differences = std::move(diff.spec_differences);
  verdict.layout_differences = std::move(diff.layout_differences);
  if (!verdict.reexecuted) {
    verdict.environment_differences = std::move(diff.environment_differences);
  }
  verdict.comparison = std::move(diff.comparison);
  // What the record is at fault for by itself comes first: of the rest the reference may be at
  // fault.
  if (diff.first_difference && !verdict.first_difference) {
    verdict.first_difference = std::move(diff.first_difference);
    verdict.is_reference_difference = true;
  }
  return {};
}

}  // namespace verbatim
