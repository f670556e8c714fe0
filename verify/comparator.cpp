#include "verify/comparator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verify/environment_comparison.h"
#include "verify/examine.h"
#include "verify/report.h"
#include "verify/stream_check.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// Where two sides lay out other layers; initial weights apart.
std::optional<Difference> CompareLayout(const std::vector<LayerRow>& recorded,
                                        const std::vector<LayerRow>& here) {
  Difference difference;
  difference.kind = DifferenceClass::kSpec;
  for (std::size_t i = 0; i < std::min(recorded.size(), here.size()); ++i) {
    LayerRow described = here[i];
    described.initial_digest = recorded[i].initial_digest;
    if (described == recorded[i]) continue;
    difference.layer = recorded[i].layer;
    difference.layer_name = recorded[i].name;
    difference.what = "layer";
    difference.recorded = fmt::format("{}: {}", recorded[i].name, recorded[i].op);
    difference.expected = fmt::format("{}: {}", here[i].name, here[i].op);
    difference.cause = "the recorded spec lays out another layer here";
    return difference;
  }
  if (recorded.size() == here.size()) return std::nullopt;
  difference.what = "layers";
  difference.recorded = FormatCount(std::ssize(recorded), "layer", "layers");
  difference.expected = FormatCount(std::ssize(here), "layer", "layers");
  difference.cause = "the recorded spec lays out another number of layers";
  return difference;
}

/// Whether a number that differs may be the doing of a later subnet that broke causality: while the
/// two were in flight together it may have written what the earlier one was still using, such as
/// running statistics, and versions are observed only once per access.
bool MayFollowFrom(const Difference& violation, const Difference& difference,
                   std::int64_t in_flight) {
  return violation.kind == DifferenceClass::kSchedule && violation.seq && difference.seq &&
         difference.kind == DifferenceClass::kComputation &&
         *violation.seq - *difference.seq <= in_flight;
}

}  // namespace

Result<Comparator> Comparator::Create(const RecordReader& reader, std::string record,
                                      Options options) {
  Comparator comparator(reader, std::move(record), std::move(options));
  ASSIGN_OR_RETURN(comparator.run_, reader.Run());
  ASSIGN_OR_RETURN(comparator.environment_, reader.Environment());
  ASSIGN_OR_RETURN(auto layers, reader.Layers());
  ASSIGN_OR_RETURN(LayerTable table, LayerTable::Build(std::move(layers)));
  ASSIGN_OR_RETURN(const std::int64_t subnets, reader.SubnetCount());
  comparator.table_ = std::make_unique<LayerTable>(std::move(table));
  comparator.comparison_.emplace(*comparator.table_, subnets);
  return comparator;
}

bool Comparator::OnEnvironment(const std::vector<EnvironmentRow>& environment) {
  environment_differences_ = CompareEnvironments(environment_, environment, ProfileOf(run_));
  if (options_.any_environment) return true;
  if (auto refusal = EnvironmentRefusal(environment_differences_)) {
    status_ = tl::unexpected(*std::move(refusal));
  }
  return status_.has_value();
}

std::string Comparator::EnvironmentCause() const {
  std::string keys;
  for (const EnvironmentDifference& difference : environment_differences_) {
    if (!difference.numeric) continue;
    keys += (keys.empty() ? "" : ", ") + difference.key;
  }
  return keys;
}

void Comparator::Report(Difference difference) {
  const bool may_be_environment = difference.kind == DifferenceClass::kComputation ||
                                  difference.kind == DifferenceClass::kInitialWeights ||
                                  difference.kind == DifferenceClass::kBatchBytes;
  const std::string environment = EnvironmentCause();
  if (may_be_environment && difference.what != "data set" && !environment.empty()) {
    difference.kind = DifferenceClass::kEnvironment;
    difference.cause = fmt::format(
        "the numeric environments differ ({}), so this says nothing of the run itself; "
        "{}",
        environment, difference.cause);
  }
  if (difference.next_command.empty()) {
    const bool may_be_explained =
        difference.kind == DifferenceClass::kComputation && difference.seq;
    difference.next_command =
        fmt::format("verbatim {} {}", may_be_explained ? "replay" : "show", ShellWord(record_));
    if (may_be_explained) {
      difference.next_command += fmt::format(" --subnet {} --explain", *difference.seq);
    } else if (difference.kind == DifferenceClass::kSchedule) {
      difference.next_command += fmt::format(" --layer {}", ShellWord(difference.layer_name));
    } else if (difference.seq) {
      difference.next_command += fmt::format(" --subnet {}", *difference.seq);
    }
  }
  difference_ = std::move(difference);
}

void Comparator::OnDataset(const Digest& dataset) {
  if (difference_ || dataset == run_.dataset_digest) return;
  Difference difference;
  difference.kind = DifferenceClass::kBatchBytes;
  difference.what = "data set";
  difference.recorded = ToShortHex(run_.dataset_digest);
  difference.expected = ToShortHex(dataset);
  difference.cause = "the data set found now is not the one that was trained on";
  difference.next_command =
      fmt::format("verbatim verify {} --reexecute all --data FOLDER", ShellWord(record_));
  Report(std::move(difference));
}

void Comparator::OnLayers(const std::vector<LayerRow>& layers) {
  auto difference = CompareLayout(table_->layers(), layers);
  is_comparable_ = !difference;
  if (is_comparable_) difference = comparison_->VisitLayers(layers);
  if (difference && !difference_) Report(*std::move(difference));
}

bool Comparator::OnSubnet(const SubnetRow& subnet) {
  if (!status_ || !is_comparable_ || (difference_ && !options_.keep_going)) return false;
  const bool with_activations = run_.record_level == "full";
  auto recorded = reader_->Subnet(subnet.seq, ReadOptions{true, with_activations, false});
  if (!recorded) {
    status_ = tl::unexpected(std::move(recorded).error());
    return false;
  }
  if (!recorded->has_value()) return false;
  auto difference = comparison_->Visit(**recorded, subnet);
  if (difference && !difference_) Report(*std::move(difference));
  if (options_.progress) options_.progress(comparison_->result().subnets_compared);
  return !difference_ || options_.keep_going;
}

void Comparator::OnEvaluations(const std::vector<EvaluationRow>& evaluations) {
  if (difference_ || !status_) return;
  const auto recorded = reader_->Evaluations();
  if (!recorded) {
    status_ = tl::unexpected(recorded.error());
    return;
  }
  const auto [left, right] =
      std::mismatch(recorded->begin(), recorded->end(), evaluations.begin(), evaluations.end());
  evaluations_equal_ = left == recorded->end() && right == evaluations.end();
  if (evaluations_equal_) return;
  Difference difference;
  difference.after_last = true;
  difference.phase = Phase::kForward;
  difference.what = fmt::format("evaluation {}", left - recorded->begin());
  const auto text = [](const std::vector<EvaluationRow>& rows, auto at) {
    return at == rows.end() ? FormatCount(std::ssize(rows), "evaluation", "evaluations")
                            : fmt::format("{} of {} correct", at->correct, at->total);
  };
  difference.recorded = text(*recorded, left);
  difference.expected = text(evaluations, right);
  const bool both = left != recorded->end() && right != evaluations.end();
  if (both && left->choices == right->choices) {
    difference.cause = "all recorded subnets were equal, the evaluation with their weights is not";
  } else {
    difference.kind = DifferenceClass::kSpec;
    difference.cause = "other subnets were evaluated than the recorded spec asks for";
  }
  Report(std::move(difference));
}

void Comparator::AddFirst(Verdict& verdict) const {
  const std::optional<Difference> found = verdict.first_difference;
  verdict.first_difference = found && !IsEarlier(*difference_, *found) ? found : difference_;
  Difference& first = *verdict.first_difference;
  if (!found || !MayFollowFrom(*found, first, verdict.run.in_flight)) return;
  first.kind = DifferenceClass::kSchedule;
  first.cause =
      fmt::format("subnets that were in flight together broke causality: {}", found->cause);
  first.next_command = found->next_command;
}

void Comparator::AddTo(Verdict& verdict) {
  const std::int64_t subnets_equal = comparison_->result().subnets_equal;
  Check check = PassedCheck(kCheckReexecution);
  check.detail = fmt::format("{} equal to {}", FormatCount(subnets_equal, "subnet", "subnets"),
                             ReferenceText(verdict.coverage));
  if (evaluations_equal_) check.detail += ", and the evaluations";
  if (difference_) {
    AddProblem(check, fmt::format("{} differs: {}", difference_->what, difference_->cause));
    AddFirst(verdict);
  }
  verdict.reexecuted = true;
  verdict.counts.subnets_reexecuted = subnets_equal;
  if (options_.keep_going && is_comparable_) verdict.comparison = comparison_->Finish();
  verdict.environment_differences = environment_differences_;
  for (Check& old : verdict.checks) {
    if (old.name == kCheckReexecution) old = std::move(check);
  }
}

}  // namespace verbatim
