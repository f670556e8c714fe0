// What all reports say in the same words; report_text.cpp and report_json.cpp render the rest.
#include "verify/report.h"

#include <fmt/format.h>

#include "verify/text.h"

namespace verbatim {
namespace {

std::string SubnetsAndAccesses(std::int64_t subnets, std::int64_t accesses) {
  return FormatCount(subnets, "subnet", "subnets") + ", " +
         FormatCount(accesses, "access", "accesses");
}

std::string EqualText(const Verdict& verdict) {
  const std::int64_t equal = verdict.counts.subnets_reexecuted;
  if (equal == 0) return "intact, no subnet to re-execute";
  if (equal < verdict.counts.subnets) {
    return fmt::format("intact and causal, the first {} equal to the sequential reference",
                       FormatCount(equal));
  }
  return verdict.run.record_level == "losses"
             ? "equal to the sequential reference in every loss (weights are not recorded)"
             : "equal to the sequential reference";
}

}  // namespace

const char* VerdictWord(const Verdict& verdict) {
  if (verdict.damaged) return "damaged";
  if (verdict.first_difference) return "different";
  const Counts& counts = verdict.counts;
  const bool whole = counts.subnets_reexecuted > 0 && counts.subnets_reexecuted == counts.subnets;
  return whole ? "equal" : "intact";
}

std::string PlaceText(const Difference& difference) {
  std::string place;
  if (difference.seq) {
    place = fmt::format("subnet {}", *difference.seq);
  } else {
    place = difference.after_last ? "after the last subnet" : "before the first subnet";
  }
  if (difference.layer) place += fmt::format(", layer {}", difference.layer_name);
  if (difference.phase) place += fmt::format(", {}", ToString(*difference.phase));
  return place;
}

std::string IncompleteText(const RunInfo& run, std::int64_t subnets) {
  const std::string count = fmt::format("{} of {}", FormatCount(subnets),
                                        FormatCount(run.subnets_planned, "subnet", "subnets"));
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
  const Counts& counts = verdict.counts;
  if (verdict.damaged) return "the record is damaged";
  if (verdict.first_difference) {
    return fmt::format("{}: not equal to the sequential reference, first {}{} ({})",
                       SubnetsAndAccesses(counts.subnets, counts.accesses),
                       verdict.first_difference->seq ? "at " : "",
                       PlaceText(*verdict.first_difference),
                       ToString(verdict.first_difference->kind));
  }
  return fmt::format(
      "{}: {}", SubnetsAndAccesses(counts.subnets_audited, counts.accesses_audited),
      verdict.reexecuted ? EqualText(verdict) : "intact and causal (not re-executed)");
}

}  // namespace verbatim
