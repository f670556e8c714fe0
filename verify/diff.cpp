#include "verify/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "verify/blame.h"
#include "verify/diff_side.h"
#include "verify/environment_comparison.h"
#include "verify/examine.h"
#include "verify/report.h"
#include "verify/run_comparison.h"
#include "verify/run_difference.h"
#include "verify/setting_differences.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// Reads either record once: each row is examined and compared as it comes by. What was compared
/// of a damaged record is thrown away.
class RecordDiff {
 public:
  RecordDiff(const RecordReader& a, const std::string& a_path, const RecordReader& b,
             const std::string& b_path)
      : a_(kCheckRecordA, a, a_path), b_(kCheckRecordB, b, b_path) {}

  Result<Verdict> Run(const std::function<void(std::int64_t)>& progress);

 private:
  bool CanBeAligned() const;
  void ReadSubnets(const std::function<void(std::int64_t)>& progress);
  Status CompareSettings();
  void CompareHeads();
  void AddSubnetsCheck();
  Status CompareEnds();
  void AddFailure(Check& check, const Difference& difference);
  void Found(Difference difference);
  void Judge(Difference& difference) const;
  std::string NextCommand(const Difference& difference) const;

  DiffSide a_;
  DiffSide b_;
  std::optional<RunComparison> comparison_;
  std::optional<Difference> first_in_subnets_;
  Verdict verdict_;
};

Result<Verdict> RecordDiff::Run(const std::function<void(std::int64_t)>& progress) {
  ReadSubnets(progress);
  AddRecords(a_, b_, verdict_);
  if (verdict_.damaged) return std::move(verdict_);
  RETURN_IF_ERROR(CompareSettings());
  CompareHeads();
  if (!comparison_) return std::move(verdict_);
  AddSubnetsCheck();
  RETURN_IF_ERROR(CompareEnds());
  return std::move(verdict_);
}

bool RecordDiff::CanBeAligned() const {
  return a_.table() != nullptr && b_.table() != nullptr &&
         !CompareLayouts(a_.table()->layers(), b_.table()->layers());
}

void RecordDiff::ReadSubnets(const std::function<void(std::int64_t)>& progress) {
  if (CanBeAligned()) {
    const std::int64_t expected =
        std::min(a_.reader().SubnetCount().value_or(0), b_.reader().SubnetCount().value_or(0));
    comparison_.emplace(*a_.table(), expected, SideNames{"A", "B"});
    comparison_->VisitLayers(b_.table()->layers());
  }
  a_.Open();
  b_.Open();
  bool is_comparing = comparison_.has_value();
  for (std::int64_t seq = 0;; ++seq) {
    const SubnetRow* const a = a_.Next();
    const SubnetRow* const b = b_.Next();
    if (a == nullptr && b == nullptr) return;
    if (progress) progress(seq + 1);
    // Beyond a gap in a run that was killed, what the next subnets read is not known; and a row
    // that is damaged means nothing.
    is_comparing = is_comparing && a != nullptr && b != nullptr && a->seq == seq && b->seq == seq &&
                   !a_.verdict().first_damaged_subnet && !b_.verdict().first_damaged_subnet;
    if (!is_comparing) continue;
    auto difference = comparison_->Visit(*a, *b);
    if (difference && !first_in_subnets_) first_in_subnets_ = std::move(difference);
  }
}

Status RecordDiff::CompareSettings() {
  ASSIGN_OR_RETURN(const auto environment_a, a_.reader().Environment());
  ASSIGN_OR_RETURN(const auto environment_b, b_.reader().Environment());
  const RunInfo& run_a = a_.run();
  const RunInfo& run_b = b_.run();
  const Numerics profile = ProfileOf(run_a);
  verdict_.environment_differences = CompareEnvironments(
      environment_a, environment_b, profile == ProfileOf(run_b) ? profile : Numerics::kNative);
  verdict_.spec_differences = SpecDifferences(run_a, run_b);
  verdict_.layout_differences = LayoutDifferences(run_a, run_b);
  Check check = PassedCheck(kDiffSpec, "equal");
  if (!verdict_.spec_differences.empty()) {
    check.detail = fmt::format(
        "{}, as listed above",
        FormatCount(std::ssize(verdict_.spec_differences), "field differs", "fields differ"));
  }
  verdict_.checks.push_back(std::move(check));
  return {};
}

void RecordDiff::CompareHeads() {
  const std::vector<LayerRow>& of_a = a_.table()->layers();
  const std::vector<LayerRow>& of_b = b_.table()->layers();
  Check layers = PassedCheck(kDiffLayers, FormatCount(std::ssize(of_a), "layer", "layers"));
  if (const auto layout = CompareLayouts(of_a, of_b)) {
    AddFailure(layers, *layout);
    verdict_.checks.push_back(std::move(layers));
    for (const char* name : {kDiffData, kDiffSubnets, kDiffEvaluations}) {
      verdict_.checks.push_back({name, Outcome::kNotRun, "the specs lay out other layers"});
    }
    return;
  }
  Check data = PassedCheck(kDiffData, ToShortHex(a_.run().dataset_digest));
  if (auto data_set = CompareDataSets(a_.run().dataset_digest, b_.run().dataset_digest)) {
    data_set->cause = "the runs were trained on other data";
    AddFailure(data, *data_set);
  }
  if (const auto weights = CompareInitialWeights(of_a, of_b)) AddFailure(layers, *weights);
  verdict_.checks.push_back(std::move(layers));
  verdict_.checks.push_back(std::move(data));
}

std::string SubnetsDetail(const Comparison& comparison) {
  std::string text = fmt::format("{}{}, {} compared", comparison.is_prefix ? "the first " : "",
                                 FormatCount(comparison.subnets_compared, "subnet", "subnets"),
                                 FormatCount(comparison.accesses_compared, "access", "accesses"));
  const std::int64_t different = comparison.subnets_compared - comparison.subnets_equal;
  if (different == 0) return text + ": equal";
  return text + fmt::format(": {} not equal, {} of them tainted",
                            FormatCount(different, "is", "are"),
                            FormatCount(comparison.tainted_count));
}

void RecordDiff::AddSubnetsCheck() {
  Comparison comparison = comparison_->Finish();
  comparison.is_prefix = comparison.subnets_compared <
                         std::max(a_.verdict().counts.subnets, b_.verdict().counts.subnets);
  for (Difference& origin : comparison.origins) Judge(origin);
  if (first_in_subnets_) Found(*std::move(first_in_subnets_));
  Check check = PassedCheck(kDiffSubnets, SubnetsDetail(comparison));
  if (comparison.subnets_equal < comparison.subnets_compared) check.outcome = Outcome::kFailed;
  verdict_.checks.push_back(std::move(check));
  verdict_.comparison = std::move(comparison);
}

Status RecordDiff::CompareEnds() {
  Check check = PassedCheck(kDiffEvaluations);
  const Verdict& a = a_.verdict();
  const Verdict& b = b_.verdict();
  const bool comparable = a.run.status == RunStatus::kComplete &&
                          b.run.status == RunStatus::kComplete &&
                          a.counts.subnets == b.counts.subnets;
  if (comparable) {
    ASSIGN_OR_RETURN(const auto of_a, a_.reader().Evaluations());
    ASSIGN_OR_RETURN(const auto of_b, b_.reader().Evaluations());
    check.detail = FormatCount(std::ssize(of_a), "evaluated subnet", "evaluated subnets");
    if (const auto difference = CompareEvaluations(of_a, of_b)) AddFailure(check, *difference);
  } else {
    check.outcome = Outcome::kNotRun;
    check.detail = "the runs are not both complete and equally long";
  }
  verdict_.checks.push_back(std::move(check));
  return {};
}

void RecordDiff::AddFailure(Check& check, const Difference& difference) {
  AddProblem(check, fmt::format("{} differ{}: A {}, B {}", difference.what,
                                difference.what.ends_with('s') ? "" : "s", difference.recorded,
                                difference.expected));
  Found(difference);
}

/// Called in causal order.
void RecordDiff::Found(Difference difference) {
  if (verdict_.first_difference) return;
  Judge(difference);
  verdict_.first_difference = std::move(difference);
}

void RecordDiff::Judge(Difference& difference) const {
  const RunInfo& run_a = a_.run();
  const RunInfo& run_b = b_.run();
  for (const DiffSide* side : {&a_, &b_}) {
    BlameSchedule(side->verdict().first_difference, side->run().in_flight, difference);
  }
  std::vector<SettingDifference> fields;
  for (const SettingDifference& field : verdict_.spec_differences) {
    const bool is_evaluation = field.key.starts_with("evaluation.");
    if (BearsOnSubnets(field.key, run_a, run_b) || (is_evaluation && difference.after_last)) {
      fields.push_back(field);
    }
  }
  const bool are_causal =
      a_.verdict().counts.violations == 0 && b_.verdict().counts.violations == 0;
  BlameSpec(fields, are_causal, difference);
  BlameEnvironment(verdict_.environment_differences, difference);
  if (difference.next_command.empty()) difference.next_command = NextCommand(difference);
}

std::string RecordDiff::NextCommand(const Difference& difference) const {
  if (difference.kind == DifferenceClass::kComputation && difference.seq) {
    return fmt::format("verbatim diff {} {} --explain", ShellPath(a_.path()), ShellPath(b_.path()));
  }
  const bool violated_in_b_alone =
      a_.verdict().counts.violations == 0 && b_.verdict().counts.violations > 0;
  return ShowCommand(violated_in_b_alone ? b_.path() : a_.path(), difference);
}

Status CheckKinds(const RecordReader& a, const std::string& a_path, const RecordReader& b,
                  const std::string& b_path, const StepDiffOptions& steps) {
  const bool is_steps = a.Kind() == RunKind::kSteps;
  if (a.Kind() != b.Kind()) {
    return UsageError(fmt::format("{} is a step run, {} a supernet's: nothing of them compares",
                                  is_steps ? a_path : b_path, is_steps ? b_path : a_path),
                      "Compare two records of one kind.");
  }
  if (is_steps || (steps.renames.empty() && !steps.replicas)) return {};
  return UsageError("layers can be renamed, and replicas compared, of step runs only",
                    "Leave out --rename and --replicas.");
}

}  // namespace

Result<Verdict> CompareRecords(const RecordReader& a, const std::string& a_path,
                               const RecordReader& b, const std::string& b_path,
                               const std::function<void(std::int64_t)>& progress,
                               const StepDiffOptions& steps) {
  RETURN_IF_ERROR(CheckKinds(a, a_path, b, b_path, steps));
  if (a.Kind() == RunKind::kSteps) {
    return CompareStepRecords(a, a_path, b, b_path, steps, progress);
  }
  RecordDiff diff(a, a_path, b, b_path);
  ASSIGN_OR_RETURN(Verdict verdict, diff.Run(progress));
  const bool is_empty = !verdict.damaged && !verdict.first_difference && verdict.comparison &&
                        verdict.comparison->subnets_compared == 0;
  if (!is_empty) return verdict;
  return BadInput(
      fmt::format("{} and {} have no subnet in common: nothing was compared", a_path, b_path),
      "Compare records of runs that finished at least one subnet.");
}

}  // namespace verbatim
