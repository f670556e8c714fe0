// What all reports say in the same words; report_text.cpp and report_json.cpp render the rest.
#include "verify/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/confidence.h"
#include "verify/head_check.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string RowsAndAccesses(const Verdict& verdict, std::int64_t rows, std::int64_t accesses) {
  return CountRows(rows, verdict.run.kind) + ", " + FormatCount(accesses, "access", "accesses");
}

bool IsSteps(const Verdict& verdict) {
  return verdict.run.kind == RunKind::kSteps;
}

/// "3 tainted subnets".
std::string TaintedText(const Verdict& verdict, std::int64_t count) {
  return fmt::format("{} tainted {}", FormatCount(count),
                     count == 1 ? WordsOf(verdict.run.kind).one : WordsOf(verdict.run.kind).many);
}

std::string EqualText(const Verdict& verdict) {
  const Coverage& coverage = verdict.coverage;
  if (coverage.executed == 0) return "intact, no subnet to re-execute";
  const std::string reference = ReferenceText(coverage);
  if (coverage.executed < verdict.counts.subnets) {
    return fmt::format("intact and causal; re-executed {}, equal to {}", coverage.description,
                       reference);
  }
  return verdict.run.record_level == "losses"
             ? fmt::format("equal to {} in every loss (weights are not recorded)", reference)
             : fmt::format("equal to {}", reference);
}

/// "record B is damaged": that one check of each record failed says which.
std::string DamagedText(const Verdict& verdict) {
  std::string names;
  for (const Check& check : verdict.checks) {
    if (check.damage) names += (names.empty() ? "" : " and ") + check.name;
  }
  const bool is_one = names.find(" and ") == std::string::npos;
  return fmt::format("{} {} damaged, so nothing was compared", names, is_one ? "is" : "are");
}

bool HasFailed(const Verdict& verdict, std::string_view name) {
  const auto found = std::ranges::find(verdict.checks, name, &Check::name);
  return found != verdict.checks.end() && found->outcome == Outcome::kFailed;
}

/// "first at subnet 12, layer block3.1, forward (computation)".
std::string FirstText(const Difference& difference) {
  return fmt::format("first {}{} ({})", difference.seq ? "at " : "", PlaceText(difference),
                     ToString(difference.kind));
}

/// What the comparison with a recorded reference adds to a verdict; empty without one.
std::string RecordedReferenceText(const Verdict& verdict) {
  if (verdict.reference.empty()) return "";
  if (verdict.is_reference_difference) {
    return fmt::format("; not equal to {}, {}", verdict.reference,
                       FirstText(*verdict.first_difference));
  }
  const bool is_part = verdict.comparison && verdict.comparison->is_prefix;
  return fmt::format(
      "; equal to {}{}", verdict.reference,
      is_part ? fmt::format(" in the {} that both have",
                            CountRows(verdict.comparison->subnets_compared, verdict.run.kind))
              : "");
}

std::string TreesSummary(const Verdict& verdict) {
  const std::string compared = fmt::format(
      "{} compared by their trees", FormatCount(*verdict.trees_compared, "subnet", "subnets"));
  if (!verdict.first_difference) return compared + ": equal; no row was read";
  return fmt::format("{}: not equal, {}; no other row was read", compared,
                     FirstText(*verdict.first_difference));
}

std::string DiffSummary(const Verdict& verdict) {
  if (verdict.damaged) return DamagedText(verdict);
  if (verdict.trees_compared) return TreesSummary(verdict);
  if (!verdict.comparison) return "the specs lay out other layers, so no subnet was compared";
  const Comparison& comparison = *verdict.comparison;
  const std::string compared =
      RowsAndAccesses(verdict, comparison.subnets_compared, comparison.accesses_compared);
  const std::string_view part = !comparison.is_prefix ? ""
                                : IsSteps(verdict)    ? " (those that both have)"
                                                      : " (a common beginning)";
  if (!verdict.first_difference) return fmt::format("{} compared{}: equal", compared, part);
  return fmt::format("{} compared{}: not equal, {}; {}, {}", compared, part,
                     FirstText(*verdict.first_difference),
                     FormatCount(comparison.origin_count, "origin", "origins"),
                     TaintedText(verdict, comparison.tainted_count));
}

}  // namespace

const char* VerdictWord(const Verdict& verdict) {
  if (verdict.damaged) return "damaged";
  if (verdict.first_difference) return "different";
  if (verdict.kind == VerdictKind::kDiff) return "equal";
  const Counts& counts = verdict.counts;
  const bool whole = counts.subnets_reexecuted > 0 && counts.subnets_reexecuted == counts.subnets;
  return whole ? "equal" : "intact";
}

std::string PlaceText(const Difference& difference) {
  std::string place;
  if (difference.seq) {
    place = fmt::format("{} {}", WordsOf(difference.run).one, *difference.seq);
  } else if (difference.kind == DifferenceClass::kForged) {
    place = "the record as a whole";
  } else {
    place = fmt::format("{} {}", difference.after_last ? "after the last" : "before the first",
                        WordsOf(difference.run).one);
  }
  if (difference.layer) place += fmt::format(", layer {}", difference.layer_name);
  if (difference.phase) place += fmt::format(", {}", ToString(*difference.phase));
  return place;
}

std::pair<const char*, const char*> ValueNames(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kDiff) return {"A", "B"};
  if (verdict.is_reference_difference) return RecordNames(verdict);
  return {"recorded", "expected"};
}

std::pair<const char*, const char*> RecordNames(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kDiff) return {"A", "B"};
  return {"record", "reference"};
}

std::string ReferenceText(const Coverage& coverage) {
  if (coverage.is_sequential_reference()) return "the sequential reference";
  return fmt::format("a replay on {}", FormatCount(coverage.stages, "stage", "stages"));
}

std::string ConfidenceText(const Coverage& coverage) {
  if (!coverage.detectable_share) return "";
  return fmt::format(
      "Had {:.1f} % of the subnets been faulty or more, this draw would have met one with a "
      "probability of {:.0f} %.",
      100 * *coverage.detectable_share, 100 * kConfidence);
}

std::string IncompleteText(const RunInfo& run, std::int64_t subnets) {
  const std::string count = CountText(run, subnets);
  switch (run.status) {
    case RunStatus::kComplete:
      return "";
    case RunStatus::kRunning:
      return fmt::format("never closed (still running, or killed) at {}", count);
    case RunStatus::kInterrupted:
      return fmt::format("interrupted after {}", count);
    case RunStatus::kFailed:
      break;
  }
  const std::string why = run.status_detail.empty() ? "" : ": " + run.status_detail;
  return fmt::format("failed after {}{}", count, why);
}

std::string Summary(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kDiff) return DiffSummary(verdict);
  if (verdict.damaged) return "the record is damaged";
  const Counts& counts = verdict.counts;
  if (verdict.first_difference && verdict.first_difference->kind == DifferenceClass::kForged) {
    const bool by_heads = HasFailed(verdict, kCheckHeads);
    return fmt::format("{}: not {} ({})", RowsAndAccesses(verdict, counts.subnets, counts.accesses),
                       by_heads ? "the record that the heads are of" : "what its ranks kept",
                       ToString(DifferenceClass::kForged));
  }
  if (verdict.first_difference && !verdict.is_reference_difference) {
    if (IsSteps(verdict)) {
      return fmt::format("{}: not causal, {}",
                         RowsAndAccesses(verdict, counts.subnets, counts.accesses),
                         FirstText(*verdict.first_difference));
    }
    return fmt::format("{}: not equal to {}, {}",
                       RowsAndAccesses(verdict, counts.subnets, counts.accesses),
                       ReferenceText(verdict.coverage), FirstText(*verdict.first_difference));
  }
  return fmt::format("{}: {}{}",
                     RowsAndAccesses(verdict, counts.subnets_audited, counts.accesses_audited),
                     IsSteps(verdict)     ? "intact and causal (of another trainer)"
                     : verdict.reexecuted ? EqualText(verdict)
                                          : "intact and causal (not re-executed)",
                     RecordedReferenceText(verdict));
}

}  // namespace verbatim
