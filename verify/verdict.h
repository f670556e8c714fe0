// What verification found, as plain values: filled by examine.h and comparator.h, written by
// report.h. docs/cli.md states the JSON form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/explanation.h"
#include "store/record.h"
#include "verify/comparison.h"
#include "verify/difference.h"

namespace verbatim {

/// One fact of the numeric environment that is not as recorded. An absent value is empty.
struct EnvironmentDifference {
  std::string key;
  std::string recorded;
  std::string here;
  bool numeric = true;  ///< whether it may change bits
};

/// One setting that two records do not share: a field of their specs ("training.lr.base") or of
/// their layouts ("stages"). A value that a side does not have is empty.
struct SettingDifference {
  std::string key;
  std::string a;  ///< of Verdict::record
  std::string b;  ///< of Verdict::reference
};

enum class Outcome { kPassed, kFailed, kNotRun };
/// "passed", "failed", "not run".
const char* ToString(Outcome outcome);

/// One thing that was looked at.
struct Check {
  std::string name;
  Outcome outcome = Outcome::kNotRun;
  std::string detail;                 ///< one line: what was found, or why it was not run
  std::vector<std::string> problems;  ///< at most kProblemsShown
  std::int64_t problem_count = 0;     ///< all of them
  bool damage = false;                ///< the record itself cannot be trusted
};
inline constexpr std::size_t kProblemsShown = 10;

/// A check that has found nothing yet.
Check PassedCheck(std::string name, std::string detail = "");
/// Adds one problem to a check and makes it failed.
void AddProblem(Check& check, std::string problem);
/// Likewise, for a problem that makes the record itself untrustworthy.
void AddDamage(Check& check, std::string problem);

struct Counts {
  std::int64_t subnets_planned = 0;
  std::int64_t subnets = 0;          ///< in the record
  std::int64_t accesses = 0;         ///< in the record
  std::int64_t subnets_audited = 0;  ///< prefix whose causality was decided
  std::int64_t accesses_audited = 0;
  std::int64_t violations = 0;  ///< of causality
  std::int64_t subnets_with_violations = 0;
  std::int64_t subnets_reexecuted = 0;  ///< found equal by re-execution
};

/// What a re-execution was to cover.
struct Coverage {
  std::int64_t recorded = 0;  ///< subnets that could have been executed
  std::int64_t selected = 0;  ///< of them asked for
  std::int64_t executed = 0;  ///< to be executed: those selected, and what they depend on
  std::string description;    ///< "8 of 300 subnets (the causal cone of subnet 12)"
  std::int64_t stages = 1;    ///< the layout of the re-execution
  std::int64_t in_flight = 1;
  /// Of a random draw: it finds a run whose share of faulty subnets is this or more with a
  /// probability of kConfidence (verify/confidence.h).
  std::optional<double> detectable_share;

  bool is_sequential_reference() const { return stages == 1 && in_flight == 1; }
};

/// Which command gave a verdict.
enum class VerdictKind { kVerify, kReplay, kDiff };

struct Verdict {
  VerdictKind kind = VerdictKind::kVerify;
  std::string record;     ///< path as typed
  std::string reference;  ///< path as typed of the record compared with; empty without one
  std::string spec_name;
  RunInfo run;  ///< as far as it could be read
  std::vector<Check> checks;
  Counts counts;
  bool damaged = false;  ///< rows are unreadable or contradict each other
  /// The first subnet whose rows are missing or damaged, as far as that can be told.
  std::optional<std::int64_t> first_damaged_subnet;
  /// Cuts of checkpoints that are not what was recorded, and the first thing that is wrong with
  /// each.
  std::map<std::int64_t, std::string> unsound_checkpoints;
  bool reexecuted = false;  ///< whether a re-execution was made
  Coverage coverage;        ///< of the re-execution
  std::vector<EnvironmentDifference> environment_differences;
  std::vector<SettingDifference> spec_differences;    ///< `diff`: of two specs
  std::vector<SettingDifference> layout_differences;  ///< `diff`: of two layouts
  std::optional<Difference> first_difference;
  /// Whether that is from a recorded reference (`verify --against`), while nothing else was found.
  bool is_reference_difference = false;
  /// Of everything that was compared, where all of it was looked at (`diff`, `verify --against`,
  /// `replay --keep-going`).
  std::optional<Comparison> comparison;
  /// `diff --first`: so many subnets were compared by their trees, and only of the first that
  /// differs the rows were read.
  std::optional<std::int64_t> trees_compared;
  /// Of the first difference, where it was asked for and could be had; else why it could not.
  std::optional<Explanation> explanation;
  std::string explanation_obstacle;

  /// Whether rows cannot be trusted, there is a difference, or neither.
  int exit_code() const { return damaged ? 3 : first_difference ? 1 : 0; }
};

}  // namespace verbatim
