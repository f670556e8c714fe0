#include "cli/injected_fault.h"

#include <fmt/format.h>

#include "store/record_fault.h"

namespace verbatim {

Result<InjectedFault> InjectedFault::Plan(const TrainRequest& request,
                                          const Experiment& experiment) {
  InjectedFault injected;
  if (!request.inject) return injected;
  ASSIGN_OR_RETURN(const Fault fault, ParseFault(*request.inject));
  ASSIGN_OR_RETURN(injected.plan_,
                   PlanFault(fault, {experiment.spec, experiment.space, *experiment.sampler,
                                     request.policy, experiment.device.is_cpu()}));
  injected.probe_ = MakeFaultInjection(*injected.plan_, experiment.spec, request.threads_per_stage);
  return injected;
}

void InjectedFault::AddTo(std::vector<EnvironmentRow>& environment) const {
  if (plan_) environment.push_back({kInjectedKey, ToString(*plan_)});
}

Status InjectedFault::DamageRecord(const std::filesystem::path& path, std::int64_t subnets) {
  if (!plan_ || !IsRecordFault(plan_->kind)) return {};
  const InjectedPlace& place = plan_->place;
  if (place.seq && *place.seq >= subnets) return {};
  if (plan_->kind == FaultKind::kRewrittenRow) {
    RETURN_IF_ERROR(RewriteAccessRow(path, *place.seq, *place.layer));
  } else if (plan_->kind == FaultKind::kDeletedRow) {
    RETURN_IF_ERROR(DeleteSubnetRow(path, *place.seq));
  } else {
    RETURN_IF_ERROR(TruncateFile(path));
  }
  damaged_ = true;
  return {};
}

std::string InjectedFault::Describe() const {
  if (!plan_) return "";
  if (damaged_ || (probe_ && probe_->happened())) {
    return fmt::format("injected: {} at {}\n", ToString(plan_->kind), ToString(plan_->place));
  }
  return fmt::format("not injected: {}, because the run ended before {}\n", ToString(plan_->kind),
                     ToString(plan_->place));
}

}  // namespace verbatim
