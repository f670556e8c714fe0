#include "cli/explaining.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "replay/explain.h"
#include "replay/plan.h"
#include "supernet/fault.h"
#include "verify/environment_comparison.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// The fault that was injected into the run on purpose, if one was.
Result<std::optional<Fault>> RecordedFault(const std::vector<EnvironmentRow>& environment) {
  for (const EnvironmentRow& row : environment) {
    if (row.key != kInjectedKey) continue;
    ASSIGN_OR_RETURN(const Fault fault, ParseFault(row.value.substr(0, row.value.find(' '))));
    // What was done to the file afterwards is no part of the computation.
    return IsRecordFault(fault.kind) ? std::optional<Fault>() : std::optional(fault);
  }
  return std::optional<Fault>();
}

Result<std::vector<std::int64_t>> SubnetsFor(const RecordReader& reader, const RunInfo& run,
                                             std::int64_t seq) {
  ReplaySelection selection;
  // What an asynchronous run reads depends on whatever ran before.
  (run.policy == "asynchronous" ? selection.until : selection.subnet) = seq;
  ASSIGN_OR_RETURN(ReplayPlan plan, PlanReplay(reader, seq + 1, selection));
  return std::move(plan.subnets);
}

/// The side as its record says that it was run.
Result<ExplainSide> RecordedSide(const RecordReader& reader, std::int64_t seq,
                                 const ExplainSetting& setting) {
  ExplainSide side;
  ASSIGN_OR_RETURN(side.run, reader.Run());
  ASSIGN_OR_RETURN(const auto environment, reader.Environment());
  side.options.data_folder = setting.data;
  side.options.device_memory = setting.device_memory;
  side.options.wishes_device_memory = true;
  ASSIGN_OR_RETURN(side.options.threads_per_stage, RecordedThreads(environment));
  ASSIGN_OR_RETURN(side.options.fault, RecordedFault(environment));
  side.options.stages = side.run.stages;
  side.options.in_flight = side.run.in_flight;
  side.options.partition = side.run.partition;
  side.options.policy = side.run.policy;
  ASSIGN_OR_RETURN(side.options.subnets, SubnetsFor(reader, side.run, seq));
  ASSIGN_OR_RETURN(const auto subnet, reader.Subnet(seq, ReadOptions{}));
  if (!subnet) return BadInput(fmt::format("the record has no subnet {}", seq));
  side.recorded_content = subnet->content_leaf;
  return side;
}

/// The same run without faults, one subnet after another on one stage.
ExplainSide SequentialSide(const ExplainSide& recorded) {
  ExplainSide side = recorded;
  side.options.fault.reset();
  side.options.stages = side.options.in_flight = 1;
  side.options.partition = "equal";
  side.options.policy = "sequential";
  return side;
}

/// Why executing a subnet would explain nothing; empty where it may.
std::string WhyNotToExecute(const Difference& difference) {
  if (!difference.seq) return "the difference lies in no subnet";
  switch (difference.kind) {
    case DifferenceClass::kSampleOrder:
    case DifferenceClass::kBatchBytes:
      return "the batch itself is another, so no operator is at fault";
    case DifferenceClass::kSpec:
      return "the runs were asked to compute different things, so no operator is at fault";
    default:
      return "";
  }
}

/// One process computes under one numeric profile.
Status CheckSameProfile(const RunInfo& left, const RunInfo& right) {
  if (ProfileOf(left) == ProfileOf(right)) return {};
  return UsageError(
      fmt::format("the records have the numeric profiles {} and {}, and one process "
                  "computes under one",
                  ToString(ProfileOf(left)), ToString(ProfileOf(right))));
}

Result<Explanation> TryToExplain(const RecordReader& record, const RecordReader* reference,
                                 const ExplainSetting& setting, const Invocation& invocation,
                                 std::int64_t seq) {
  ASSIGN_OR_RETURN(const ExplainSide left, RecordedSide(record, seq, setting));
  if (reference == nullptr) return invocation.engine->Explain(left, SequentialSide(left), seq);
  ASSIGN_OR_RETURN(const ExplainSide right, RecordedSide(*reference, seq, setting));
  RETURN_IF_ERROR(CheckSameProfile(left.run, right.run));
  return invocation.engine->Explain(left, right, seq);
}

}  // namespace

void ExplainFirstDifference(const RecordReader& record, const RecordReader* reference,
                            const ExplainSetting& setting, const Invocation& invocation,
                            Verdict& verdict) {
  if (!verdict.first_difference || verdict.damaged) return;
  Difference& difference = *verdict.first_difference;
  verdict.explanation_obstacle = WhyNotToExecute(difference);
  if (!verdict.explanation_obstacle.empty()) return;
  auto explanation = TryToExplain(record, reference, setting, invocation, *difference.seq);
  if (!explanation) {
    verdict.explanation_obstacle = explanation.error().message;
    return;
  }
  verdict.explanation = *std::move(explanation);
  // What was asked for is answered; what the subnet read and wrote is the next thing to look at.
  difference.next_command =
      fmt::format("verbatim show {} --subnet {}", ShellPath(verdict.record), *difference.seq);
}

CLI::Option* AddExplainOption(CLI::App& command, bool& explain) {
  return command.add_flag(
      "--explain", explain,
      "On a difference, executes the subnet at fault on both sides again and names "
      "the operator, the phase and the first element that differs. Example: "
      "--explain");
}

}  // namespace verbatim
