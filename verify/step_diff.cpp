#include "verify/step_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "recorder/step_spec.h"
#include "verify/blame.h"
#include "verify/diff.h"
#include "verify/diff_side.h"
#include "verify/environment_comparison.h"
#include "verify/run_comparison.h"
#include "verify/run_words.h"
#include "verify/setting_differences.h"
#include "verify/step_projection.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// Stands for a model of which no digests are compared: what differs is passed on through it.
constexpr const char* kWholeModel = "the model";

/// Whether any step has a loss; such a run's steps without one are compared, for a NaN is no less a
/// difference.
bool HasLosses(const RecordReader& reader) {
  bool has_losses = false;
  const Status read = reader.ForEachSubnet({false, false, false}, [&](const SubnetRow& row) {
    has_losses = row.loss_bits != kNoLoss;
    return !has_losses;
  });
  return read && has_losses;
}

/// One record, and how it began.
struct StepSide {
  StepSide(const char* check, const RecordReader& reader, const std::string& path)
      : rows(check, reader, path) {
    if (auto parsed = ParseStepSpec(rows.run().spec_json, "the recorded spec")) spec = *parsed;
    const auto row = reader.Subnet(0, {false, false, false});
    if (!row || !*row || !(*row)->step) return;
    first_step = (*row)->step->step;
    has_losses = HasLosses(reader);
  }

  /// Whether its initial weights are those before its first row; else steps may lie between, of
  /// which nobody knows how many.
  bool begins_with_first_step() const { return spec.every == 1 || first_step == 0; }

  DiffSide rows;
  StepSpec spec;
  std::int64_t first_step = 0;
  bool has_losses = true;
  std::int64_t only_here = 0;         ///< steps that the other side does not have
  std::optional<SubnetRow> previous;  ///< the step before the one at hand, until the first common
};

class StepDiff {
 public:
  StepDiff(const RecordReader& a, const std::string& a_path, const RecordReader& b,
           const std::string& b_path, const StepDiffOptions& options)
      : a_(kCheckRecordA, a, a_path), b_(kCheckRecordB, b, b_path), options_(options) {}

  Result<Verdict> Run(const std::function<void(std::int64_t)>& progress);

 private:
  Status CheckReplicas() const;
  Status MatchSides();
  StepScope Scope() const;
  void ReadSteps(const std::function<void(std::int64_t)>& progress);
  void Meet(const SubnetRow& a, const SubnetRow& b);
  void Begin(std::int64_t step);
  bool SettleBeginnings(std::int64_t step);
  std::string BeginningsText() const;
  Status CompareSettings();
  void AddLayersCheck();
  void AddStepsCheck();
  std::string StepsDetail(const Comparison& comparison) const;
  Error NothingInCommon() const;
  void AddFailure(Check& check, const Difference& difference);
  void Found(Difference difference);
  void Judge(Difference& difference) const;
  std::string Circumstances(const Difference& difference) const;
  void UseLayersOfA(Difference& difference) const;

  StepSide a_;
  StepSide b_;
  const StepDiffOptions& options_;
  LayerMatching matching_;
  bool has_whole_model_ = false;
  std::optional<LayerTable> table_;
  std::optional<StepProjection> projection_;
  std::optional<RunComparison> comparison_;
  std::optional<Difference> initial_weights_;
  std::string beginnings_;  ///< why initial weights were not compared; empty: they were
  std::optional<std::int64_t> first_common_;
  std::int64_t last_common_ = -1;
  std::optional<Difference> first_in_steps_;
  Verdict verdict_;
};

Result<Verdict> StepDiff::Run(const std::function<void(std::int64_t)>& progress) {
  RETURN_IF_ERROR(CheckReplicas());
  RETURN_IF_ERROR(MatchSides());
  ReadSteps(progress);
  AddRecords(a_.rows, b_.rows, verdict_);
  if (verdict_.damaged) return std::move(verdict_);
  if (!comparison_) return tl::unexpected(NothingInCommon());
  RETURN_IF_ERROR(CompareSettings());
  AddLayersCheck();
  AddStepsCheck();
  return std::move(verdict_);
}

Status StepDiff::CheckReplicas() const {
  if (!options_.replicas) return {};
  if (a_.spec.world_size != b_.spec.world_size) {
    return UsageError(fmt::format("--replicas: A is of {}, B of {}",
                                  FormatCount(a_.spec.world_size, "rank", "ranks"),
                                  FormatCount(b_.spec.world_size, "rank", "ranks")),
                      "Replicas are ranks of one run.");
  }
  if (a_.spec.rank != b_.spec.rank) return {};
  return UsageError(fmt::format("--replicas: both records are rank {}'s", a_.spec.rank),
                    "Name the records of two ranks, or leave out --replicas.");
}

Status StepDiff::MatchSides() {
  const LayerTable* const of_a = a_.rows.table();
  const LayerTable* const of_b = b_.rows.table();
  if (of_a == nullptr || of_b == nullptr) return {};
  ASSIGN_OR_RETURN(matching_, MatchLayers(of_a->layers(), of_b->layers(), options_.renames));
  const auto has_no_layers = [](const StepSide& side) {
    return side.rows.table()->layers().empty() && side.rows.run().record_level == "losses";
  };
  if (has_no_layers(a_) || has_no_layers(b_)) matching_.differences.clear();
  has_whole_model_ = std::ranges::none_of(matching_.a, &LayerRow::versioned);
  if (has_whole_model_) {
    LayerRow model;
    model.layer = model.position = static_cast<std::int32_t>(matching_.a.size());
    model.name = kWholeModel;
    model.versioned = true;
    matching_.a.push_back(model);
    matching_.b.push_back(model);
    matching_.id_in_a.push_back(-1);
  }
  projection_.emplace(matching_, Scope());
  return {};
}

StepScope StepDiff::Scope() const {
  StepScope scope;
  const bool are_full =
      a_.rows.run().record_level == "full" && b_.rows.run().record_level == "full";
  scope.losses = a_.has_losses && b_.has_losses;
  scope.optimizer_state = a_.spec.optimizer_state && b_.spec.optimizer_state &&
                          a_.rows.run().record_level != "losses" &&
                          b_.rows.run().record_level != "losses";
  scope.gradients = a_.spec.gradients && b_.spec.gradients && are_full;
  scope.replicas = options_.replicas || a_.spec.world_size != b_.spec.world_size;
  return scope;
}

void StepDiff::ReadSteps(const std::function<void(std::int64_t)>& progress) {
  a_.rows.Open();
  b_.rows.Open();
  const SubnetRow* a = a_.rows.Next();
  const SubnetRow* b = b_.rows.Next();
  std::int64_t read = 0;
  const auto advance = [](StepSide& side, const SubnetRow*& row, bool keep) {
    if (keep) side.previous = *row;
    row = side.rows.Next();
  };
  while (a != nullptr || b != nullptr) {
    if (progress) progress(++read);
    // A row that is damaged means nothing, nor does what comes after it.
    const bool is_sound = projection_ && !a_.rows.verdict().first_damaged_subnet &&
                          !b_.rows.verdict().first_damaged_subnet;
    const bool is_a = b == nullptr || (a != nullptr && NumberOf(*a) <= NumberOf(*b));
    const bool is_b = a == nullptr || (b != nullptr && NumberOf(*b) <= NumberOf(*a));
    const bool is_before = is_sound && !first_common_;
    if (is_a && is_b && is_sound) Meet(*a, *b);
    if (is_a && !is_b) ++a_.only_here;
    if (is_b && !is_a) ++b_.only_here;
    if (is_a && !is_b && is_sound && first_common_) projection_->SkipOfA(*a);
    if (is_b && !is_a && is_sound && first_common_) projection_->SkipOfB(*b);
    if (is_a) advance(a_, a, is_before);
    if (is_b) advance(b_, b, is_before);
  }
}

void StepDiff::Meet(const SubnetRow& a, const SubnetRow& b) {
  const std::int64_t step = a.step->step;
  const bool is_first = !first_common_;
  if (is_first) Begin(step);
  projection_->Project(a, b, last_common_, has_whole_model_);
  const bool began_elsewhere = !beginnings_.empty() && a_.first_step != b_.first_step;
  if (is_first && began_elsewhere) projection_->LeaveOutOutside();
  auto difference = comparison_->Visit(projection_->a(), projection_->b());
  if (difference && !first_in_steps_) first_in_steps_ = std::move(difference);
  last_common_ = step;
}

/// Only now is it known what the sides had before what they have in common.
void StepDiff::Begin(std::int64_t step) {
  first_common_ = step;
  if (!SettleBeginnings(step)) {
    for (std::size_t i = 0; i < matching_.a.size(); ++i) {
      matching_.b[i].initial_digest = matching_.a[i].initial_digest;
    }
    beginnings_ = "what the runs began with is not compared: " + BeginningsText();
  }
  for (std::size_t i = 0; i < matching_.a.size(); ++i) {
    const bool is_known =
        matching_.a[i].initial_digest != Digest{} && matching_.b[i].initial_digest != Digest{};
    if (!is_known) matching_.b[i].initial_digest = matching_.a[i].initial_digest;
  }
  auto table = LayerTable::BuildForSteps(matching_.a);
  VERBATIM_CHECK(table.has_value(), "{}", table.error().message);
  table_ = *std::move(table);
  const std::int64_t expected = std::min(a_.rows.reader().SubnetCount().value_or(0),
                                         b_.rows.reader().SubnetCount().value_or(0));
  comparison_.emplace(*table_, expected, SideNames{"A", "B"},
                      ComparisonMode{RunKind::kSteps, Scope().replicas});
  initial_weights_ = comparison_->VisitLayers(matching_.b);
}

/// Whether the initial weights of both sides are of one moment; where one begins right after a step
/// of the other, that step's weights take the place of its initial ones.
bool StepDiff::SettleBeginnings(std::int64_t step) {
  if (a_.first_step == b_.first_step) {
    return a_.begins_with_first_step() && b_.begins_with_first_step();
  }
  const auto continues = [step](const StepSide& late, const StepSide& early) {
    return late.first_step == step && late.spec.every == 1 && early.previous &&
           early.previous->step->step == step - 1;
  };
  const auto take = [](const StepSide& early, const std::vector<std::int32_t>& common,
                       std::vector<LayerRow>& layers) {
    for (const AccessRow& access : early.previous->accesses) {
      const std::int32_t id = common[static_cast<std::size_t>(access.layer)];
      if (id >= 0 && access.weights) {
        layers[static_cast<std::size_t>(id)].initial_digest = *access.weights;
      }
    }
  };
  if (continues(b_, a_)) {
    take(a_, matching_.common_of_a, matching_.a);
  } else if (continues(a_, b_)) {
    take(b_, matching_.common_of_b, matching_.b);
  } else {
    return false;
  }
  return true;
}

std::string StepDiff::BeginningsText() const {
  if (a_.first_step != b_.first_step) {
    return fmt::format("A is recorded from step {}, B from step {}", a_.first_step, b_.first_step);
  }
  return fmt::format("steps before step {} may be unrecorded (one of {} is in A, of {} in B)",
                     a_.first_step, a_.spec.every, b_.spec.every);
}

Error StepDiff::NothingInCommon() const {
  const auto range = [](const StepSide& side) {
    const std::int64_t count = side.rows.verdict().counts.subnets;
    return count == 0
               ? std::string("no step")
               : fmt::format("{} from {} on", CountRows(count, RunKind::kSteps), side.first_step);
  };
  return {ErrorKind::kBadInput,
          fmt::format("{} has {}, {} has {}: no step in common, so nothing was compared",
                      a_.rows.path(), range(a_), b_.rows.path(), range(b_)),
          "Steps meet by the trainer's own numbers: compare records that share some."};
}

Status StepDiff::CompareSettings() {
  ASSIGN_OR_RETURN(const auto environment_a, a_.rows.reader().Environment());
  ASSIGN_OR_RETURN(const auto environment_b, b_.rows.reader().Environment());
  verdict_.environment_differences = CompareEnvironments(environment_a, environment_b);
  verdict_.spec_differences = SpecDifferences(a_.rows.run(), b_.rows.run());
  verdict_.layout_differences = LayoutDifferences(a_.rows.run(), b_.rows.run());
  Check check = PassedCheck(kDiffSpec, "equal");
  if (!verdict_.spec_differences.empty()) {
    check.detail = fmt::format(
        "{}, as listed above",
        FormatCount(std::ssize(verdict_.spec_differences), "field differs", "fields differ"));
  }
  if (Scope().replicas) check.detail += "; compared as replicas: weights, buffers, optimizer state";
  verdict_.checks.push_back(std::move(check));
  return {};
}

void StepDiff::AddLayersCheck() {
  const std::int64_t common = std::ssize(matching_.a) - (has_whole_model_ ? 1 : 0);
  Check check = PassedCheck(kDiffLayers, FormatCount(common, "common layer", "common layers"));
  if (!beginnings_.empty()) check.detail += "; " + beginnings_;
  for (const Difference& difference : matching_.differences) {
    AddProblem(check, fmt::format("{}: A {}, B {}", difference.cause, difference.recorded,
                                  difference.expected));
    Found(difference);
  }
  if (initial_weights_) {
    UseLayersOfA(*initial_weights_);
    AddFailure(check, *initial_weights_);
  }
  verdict_.checks.push_back(std::move(check));
}

std::string StepDiff::StepsDetail(const Comparison& comparison) const {
  std::string text =
      fmt::format("{} in common, from {} to {}, {} compared",
                  CountRows(comparison.subnets_compared, RunKind::kSteps), *first_common_,
                  last_common_, FormatCount(comparison.accesses_compared, "access", "accesses"));
  const std::int64_t different = comparison.subnets_compared - comparison.subnets_equal;
  text += different == 0 ? ": equal"
                         : fmt::format(": {} not equal, {} of them tainted",
                                       FormatCount(different, "is", "are"),
                                       FormatCount(comparison.tainted_count));
  const auto add_only = [&text](const StepSide& side, const char* name) {
    if (side.only_here > 0) {
      text += fmt::format("; {} only in {}", CountRows(side.only_here, RunKind::kSteps), name);
    }
  };
  add_only(a_, "A");
  add_only(b_, "B");
  return text;
}

void StepDiff::AddStepsCheck() {
  Comparison comparison = comparison_->Finish();
  comparison.is_prefix = a_.only_here + b_.only_here > 0;
  if (has_whole_model_) {
    comparison.accesses_compared = comparison.accesses_different = 0;
    comparison.layers.clear();
    comparison.map = {};
  }
  for (const LayerRow& layer : matching_.a) comparison.map.names.push_back(layer.name);
  for (Difference& origin : comparison.origins) {
    UseLayersOfA(origin);
    Judge(origin);
  }
  for (LayerTaint& layer : comparison.layers) {
    layer.layer = matching_.id_in_a[static_cast<std::size_t>(layer.layer)];
  }
  if (first_in_steps_) {
    UseLayersOfA(*first_in_steps_);
    Found(*std::move(first_in_steps_));
  }
  Check check = PassedCheck(kDiffSteps, StepsDetail(comparison));
  if (comparison.subnets_equal < comparison.subnets_compared) check.outcome = Outcome::kFailed;
  verdict_.checks.push_back(std::move(check));
  verdict_.comparison = std::move(comparison);
}

void StepDiff::AddFailure(Check& check, const Difference& difference) {
  AddProblem(check, fmt::format("{} differ{}: A {}, B {}", difference.what,
                                difference.what.ends_with('s') ? "" : "s", difference.recorded,
                                difference.expected));
  Found(difference);
}

/// Called in causal order.
void StepDiff::Found(Difference difference) {
  if (verdict_.first_difference) return;
  Judge(difference);
  verdict_.first_difference = std::move(difference);
}

/// A difference among common layers, in A's own ids.
void StepDiff::UseLayersOfA(Difference& difference) const {
  if (!difference.layer) return;
  const std::int32_t id = matching_.id_in_a[static_cast<std::size_t>(*difference.layer)];
  difference.layer = id;
}

void StepDiff::Judge(Difference& difference) const {
  difference.cause += Circumstances(difference);
  BlameEnvironment(verdict_.environment_differences, difference);
  if (difference.next_command.empty()) {
    difference.next_command = ShowCommand(a_.rows.path(), difference);
  }
}

/// What else is known of two runs that explains a difference.
std::string StepDiff::Circumstances(const Difference& difference) const {
  if (difference.kind == DifferenceClass::kSpec) return "";
  std::string text;
  if (a_.spec.seed && b_.spec.seed && a_.spec.seed != b_.spec.seed) {
    text += fmt::format("; the runs had other seeds ({} / {})", *a_.spec.seed, *b_.spec.seed);
  }
  std::string names;
  for (const SettingDifference& field : verdict_.spec_differences) {
    if (!field.key.starts_with("steps.settings.")) continue;
    names += (names.empty() ? "" : ", ") + field.key.substr(std::string("steps.settings.").size());
  }
  if (!names.empty()) text += fmt::format("; the runs' own settings differ ({})", names);
  if (a_.spec.rank != b_.spec.rank && !Scope().replicas) {
    text += fmt::format("; A is rank {}, B rank {}: --replicas compares what replicas share",
                        a_.spec.rank, b_.spec.rank);
  }
  return text;
}

}  // namespace

Result<Verdict> CompareStepRecords(const RecordReader& a, const std::string& a_path,
                                   const RecordReader& b, const std::string& b_path,
                                   const StepDiffOptions& options,
                                   const std::function<void(std::int64_t)>& progress) {
  return StepDiff(a, a_path, b, b_path, options).Run(progress);
}

}  // namespace verbatim
