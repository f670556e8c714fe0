#include "verify/comparator.h"

#include <fmt/format.h>

#include <utility>

#include "verify/blame.h"
#include "verify/environment_comparison.h"
#include "verify/examine.h"
#include "verify/report.h"
#include "verify/run_difference.h"
#include "verify/text.h"

namespace verbatim {

Result<Comparator> Comparator::Create(const RecordReader& reader, std::string record,
                                      Options options) {
  Comparator comparator(reader, std::move(record), std::move(options));
  ASSIGN_OR_RETURN(comparator.run_, reader.Run());
  ASSIGN_OR_RETURN(comparator.environment_, reader.Environment());
  ASSIGN_OR_RETURN(auto layers, reader.Layers());
  ASSIGN_OR_RETURN(LayerTable table, LayerTable::Build(std::move(layers)));
  ASSIGN_OR_RETURN(const std::int64_t subnets, reader.SubnetCount());
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(comparator.run_.spec_json, "the recorded spec"));
  if (!DifferenceFromSpec(table, spec)) table.ReadDelays(spec);
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

void Comparator::Report(Difference difference) {
  BlameEnvironment(environment_differences_, difference);
  if (difference.next_command.empty()) {
    const bool may_be_explained =
        difference.kind == DifferenceClass::kComputation && difference.seq;
    difference.next_command = may_be_explained
                                  ? fmt::format("verbatim replay {} --subnet {} --explain",
                                                ShellPath(record_), *difference.seq)
                                  : ShowCommand(record_, difference);
  }
  difference_ = std::move(difference);
}

void Comparator::OnDataset(const Digest& dataset) {
  auto difference = CompareDataSets(run_.dataset_digest, dataset);
  if (difference_ || !difference) return;
  difference->cause = "the data set found now is not the one that was trained on";
  difference->next_command =
      fmt::format("verbatim verify {} --reexecute all --data FOLDER", ShellPath(record_));
  Report(*std::move(difference));
}

void Comparator::OnLayers(const std::vector<LayerRow>& layers) {
  auto difference = CompareLayouts(table_->layers(), layers);
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
  auto difference = CompareEvaluations(*recorded, evaluations);
  evaluations_equal_ = !difference;
  if (difference) Report(*std::move(difference));
}

void Comparator::AddFirst(Verdict& verdict) const {
  const std::optional<Difference> found = verdict.first_difference;
  verdict.first_difference = found && !IsEarlier(*difference_, *found) ? found : difference_;
  BlameSchedule(found, verdict.run.in_flight, *verdict.first_difference);
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
