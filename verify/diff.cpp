#include "verify/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verify/blame.h"
#include "verify/environment_comparison.h"
#include "verify/examine.h"
#include "verify/report.h"
#include "verify/run_comparison.h"
#include "verify/run_difference.h"
#include "verify/setting_differences.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// One of the two records.
struct Side {
  const char* name;   ///< "A"
  const char* check;  ///< kCheckRecordA
  const RecordReader& reader;
  std::string path;
  Verdict examined;
};

class RecordDiff {
 public:
  RecordDiff(Side a, Side b) : a_(std::move(a)), b_(std::move(b)) {}

  Result<Verdict> Run(const std::function<void(std::int64_t)>& progress);

 private:
  void Examine(const std::function<void(std::int64_t)>& progress);
  void AddRecordCheck(const Side& side);
  Status CompareSettings();
  Result<bool> CompareHeads();
  Status CompareSubnets(const std::function<void(std::int64_t)>& progress);
  static std::string SubnetsDetail(const Comparison& comparison);
  Status CompareEnds();
  void AddFailure(Check& check, const Difference& difference);
  void Found(Difference difference);
  void Judge(Difference& difference) const;
  std::string NextCommand(const Difference& difference) const;

  Side a_;
  Side b_;
  Verdict verdict_;
  std::vector<LayerRow> layers_;  ///< of A
};

Result<Verdict> RecordDiff::Run(const std::function<void(std::int64_t)>& progress) {
  Examine(progress);
  if (verdict_.damaged) return std::move(verdict_);
  RETURN_IF_ERROR(CompareSettings());
  ASSIGN_OR_RETURN(const bool can_be_aligned, CompareHeads());
  if (can_be_aligned) {
    RETURN_IF_ERROR(CompareSubnets(progress));
    RETURN_IF_ERROR(CompareEnds());
  }
  return std::move(verdict_);
}

void RecordDiff::Examine(const std::function<void(std::int64_t)>& progress) {
  a_.examined = ExamineRecord(a_.reader, a_.path, progress);
  b_.examined = ExamineRecord(b_.reader, b_.path, progress);
  verdict_.kind = VerdictKind::kDiff;
  verdict_.record = a_.path;
  verdict_.reference = b_.path;
  verdict_.spec_name = a_.examined.spec_name;
  verdict_.run = a_.examined.run;
  verdict_.counts = a_.examined.counts;
  for (const Side* side : {&a_, &b_}) {
    AddRecordCheck(*side);
    verdict_.damaged |= side->examined.damaged;
    if (!verdict_.first_damaged_subnet) {
      verdict_.first_damaged_subnet = side->examined.first_damaged_subnet;
    }
  }
}

void RecordDiff::AddRecordCheck(const Side& side) {
  const Verdict& examined = side.examined;
  Check check = PassedCheck(side.check);
  check.detail = fmt::format("{}: {}, {}", side.path,
                             FormatCount(examined.counts.subnets, "subnet", "subnets"),
                             FormatCount(examined.counts.accesses, "access", "accesses"));
  const std::string incomplete = IncompleteText(examined.run, examined.counts.subnets);
  if (!incomplete.empty()) check.detail += "; " + incomplete;
  // No difference between the two by itself, but the reader should know.
  if (examined.counts.violations > 0) {
    check.detail += fmt::format("; {} of causality",
                                FormatCount(examined.counts.violations, "violation", "violations"));
  }
  for (const Check& finding : examined.checks) {
    if (!finding.damage) continue;
    for (const std::string& problem : finding.problems) {
      AddDamage(check, fmt::format("{}: {}", finding.name, problem));
    }
  }
  verdict_.checks.push_back(std::move(check));
}

Status RecordDiff::CompareSettings() {
  ASSIGN_OR_RETURN(const auto environment_a, a_.reader.Environment());
  ASSIGN_OR_RETURN(const auto environment_b, b_.reader.Environment());
  const RunInfo& run_a = a_.examined.run;
  const RunInfo& run_b = b_.examined.run;
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

/// False where the layers are not the same, so that subnets cannot be compared.
Result<bool> RecordDiff::CompareHeads() {
  ASSIGN_OR_RETURN(layers_, a_.reader.Layers());
  ASSIGN_OR_RETURN(const auto layers_b, b_.reader.Layers());
  Check layers = PassedCheck(kDiffLayers, FormatCount(std::ssize(layers_), "layer", "layers"));
  auto layout = CompareLayouts(layers_, layers_b);
  if (layout) {
    AddFailure(layers, *layout);
    verdict_.checks.push_back(std::move(layers));
    for (const char* name : {kDiffData, kDiffSubnets, kDiffEvaluations}) {
      verdict_.checks.push_back({name, Outcome::kNotRun, "the specs lay out other layers"});
    }
    return false;
  }
  auto weights = CompareInitialWeights(layers_, layers_b);
  Check data = PassedCheck(kDiffData, ToShortHex(a_.examined.run.dataset_digest));
  auto data_set = CompareDataSets(a_.examined.run.dataset_digest, b_.examined.run.dataset_digest);
  if (data_set) {
    data_set->cause = "the runs were trained on other data";
    AddFailure(data, *data_set);
  }
  if (weights) AddFailure(layers, *weights);
  verdict_.checks.push_back(std::move(layers));
  verdict_.checks.push_back(std::move(data));
  return true;
}

Status RecordDiff::CompareSubnets(const std::function<void(std::int64_t)>& progress) {
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::Build(layers_));
  ASSIGN_OR_RETURN(const auto layers_b, b_.reader.Layers());
  const bool both_full =
      a_.examined.run.record_level == "full" && b_.examined.run.record_level == "full";
  const ReadOptions options{true, both_full, false};
  ASSIGN_OR_RETURN(const auto of_a, a_.reader.Subnets(options));
  ASSIGN_OR_RETURN(const auto of_b, b_.reader.Subnets(options));
  RunComparison comparison(table, std::min(a_.examined.counts.subnets, b_.examined.counts.subnets),
                           {"A", "B"});
  comparison.VisitLayers(layers_b);
  for (std::int64_t seq = 0;; ++seq) {
    ASSIGN_OR_RETURN(const SubnetRow* const a, of_a->Next());
    ASSIGN_OR_RETURN(const SubnetRow* const b, of_b->Next());
    // Beyond a gap in a run that was killed, what the next subnets read is not known.
    if (a == nullptr || b == nullptr || a->seq != seq || b->seq != seq) break;
    if (auto difference = comparison.Visit(*a, *b)) Found(*std::move(difference));
    if (progress) progress(seq + 1);
  }
  verdict_.comparison = comparison.Finish();
  verdict_.comparison->is_prefix = verdict_.comparison->subnets_compared <
                                   std::max(a_.examined.counts.subnets, b_.examined.counts.subnets);
  for (Difference& origin : verdict_.comparison->origins) Judge(origin);
  Check check = PassedCheck(kDiffSubnets, SubnetsDetail(*verdict_.comparison));
  if (verdict_.comparison->subnets_equal < verdict_.comparison->subnets_compared) {
    check.outcome = Outcome::kFailed;
  }
  verdict_.checks.push_back(std::move(check));
  return {};
}

std::string RecordDiff::SubnetsDetail(const Comparison& comparison) {
  std::string text = fmt::format("{}{}, {} compared", comparison.is_prefix ? "the first " : "",
                                 FormatCount(comparison.subnets_compared, "subnet", "subnets"),
                                 FormatCount(comparison.accesses_compared, "access", "accesses"));
  const std::int64_t different = comparison.subnets_compared - comparison.subnets_equal;
  if (different == 0) return text + ": equal";
  return text + fmt::format(": {} not equal, {} of them tainted",
                            FormatCount(different, "is", "are"),
                            FormatCount(comparison.tainted_count));
}

Status RecordDiff::CompareEnds() {
  Check check = PassedCheck(kDiffEvaluations);
  const Verdict& a = a_.examined;
  const Verdict& b = b_.examined;
  const bool comparable = a.run.status == RunStatus::kComplete &&
                          b.run.status == RunStatus::kComplete &&
                          a.counts.subnets == b.counts.subnets;
  if (comparable) {
    ASSIGN_OR_RETURN(const auto of_a, a_.reader.Evaluations());
    ASSIGN_OR_RETURN(const auto of_b, b_.reader.Evaluations());
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
  const RunInfo& run_a = a_.examined.run;
  const RunInfo& run_b = b_.examined.run;
  for (const Side* side : {&a_, &b_}) {
    BlameSchedule(side->examined.first_difference, side->examined.run.in_flight, difference);
  }
  std::vector<SettingDifference> fields;
  for (const SettingDifference& field : verdict_.spec_differences) {
    const bool is_evaluation = field.key.starts_with("evaluation.");
    if (BearsOnSubnets(field.key, run_a, run_b) || (is_evaluation && difference.after_last)) {
      fields.push_back(field);
    }
  }
  BlameSpec(fields, difference);
  BlameEnvironment(verdict_.environment_differences, difference);
  if (difference.next_command.empty()) difference.next_command = NextCommand(difference);
}

std::string RecordDiff::NextCommand(const Difference& difference) const {
  const bool violated_in_b_alone =
      a_.examined.counts.violations == 0 && b_.examined.counts.violations > 0;
  const std::string record = ShellWord(violated_in_b_alone ? b_.path : a_.path);
  if (difference.kind == DifferenceClass::kSchedule) {
    return fmt::format("verbatim show {} --layer {}", record, ShellWord(difference.layer_name));
  }
  if (!difference.seq) return fmt::format("verbatim show {}", record);
  if (difference.kind == DifferenceClass::kComputation) {
    return fmt::format("verbatim replay {} --subnet {} --explain", record, *difference.seq);
  }
  return fmt::format("verbatim show {} --subnet {}", record, *difference.seq);
}

}  // namespace

Result<Verdict> CompareRecords(const RecordReader& a, const std::string& a_path,
                               const RecordReader& b, const std::string& b_path,
                               const std::function<void(std::int64_t)>& progress) {
  RecordDiff diff({"A", kCheckRecordA, a, a_path, {}}, {"B", kCheckRecordB, b, b_path, {}});
  return diff.Run(progress);
}

}  // namespace verbatim
