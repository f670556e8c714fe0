#include "verify/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "verify/run_words.h"

namespace verbatim {
namespace {

template <std::size_t N>
bool IsOneOf(std::string_view value, const std::array<std::string_view, N>& known) {
  return std::find(known.begin(), known.end(), value) != known.end();
}

constexpr std::array<std::string_view, 5> kPolicies{"causal", "sequential", "gpipe", "1f1b",
                                                    "asynchronous"};
constexpr std::string_view kStepsPolicy = "steps";
constexpr std::array<std::string_view, 3> kLevels{"losses", "weights", "full"};

}  // namespace

std::vector<std::string> RunProblems(const RunInfo& run) {
  std::vector<std::string> problems;
  const auto require = [&](bool condition, std::string problem) {
    if (!condition) problems.push_back(std::move(problem));
  };
  const bool of_steps = run.kind == RunKind::kSteps;
  require(of_steps ? run.policy == kStepsPolicy : IsOneOf(run.policy, kPolicies),
          fmt::format("unknown policy '{}'", run.policy));
  require(IsOneOf(run.record_level, kLevels),
          fmt::format("unknown record level '{}'", run.record_level));
  require(run.stages >= 1, fmt::format("{} stages", run.stages));
  require(run.in_flight >= 1, fmt::format("{} subnets in flight", run.in_flight));
  require(run.subnets_planned >= (of_steps ? 0 : 1),
          fmt::format("{} {} planned", run.subnets_planned, WordsOf(run.kind).many));
  require(!run.started_utc.empty(), "no start time");
  require(run.ended_utc.empty() == (run.status == RunStatus::kRunning),
          run.ended_utc.empty() ? "the run has ended, but at no time"
                                : "the run has an end time, but no end");
  return problems;
}

RowRules RulesOf(const Spec& spec) {
  return {spec.training.batch, spec.training.microbatches};
}

RowCheck::RowCheck(const RunInfo& run, std::span<const ResumptionRow> resumptions,
                   const RowRules& rules, const LayerTable& table)
    : run_(run),
      rules_(rules),
      table_(table),
      stages_(run.stages),
      weights_(run.record_level != "losses"),
      full_(run.record_level == "full") {
  for (const ResumptionRow& row : resumptions) stages_ = std::max(stages_, row.stages);
}

std::optional<std::string> RowCheck::Problem(const SubnetRow& subnet) const {
  std::optional<std::string> problem = table_.ChoicesProblem(subnet.choices);
  if (!problem && subnet.samples.size() != static_cast<std::size_t>(rules_.samples)) {
    problem = fmt::format("has {} samples, the spec's batch is {}", subnet.samples.size(),
                          rules_.samples);
  }
  if (!problem && subnet.seq >= run_.subnets_planned) {
    problem = fmt::format("lies beyond the {} that were planned", run_.subnets_planned);
  }
  if (!problem) problem = AccessSetProblem(subnet);
  for (auto access = subnet.accesses.begin(); !problem && access != subnet.accesses.end();
       ++access) {
    problem = AccessProblem(*access);
  }
  if (!problem) problem = ActivationProblem(subnet);
  if (problem) problem = fmt::format("subnet {} {}", subnet.seq, *problem);
  return problem;
}

std::optional<std::string> RowCheck::AccessSetProblem(const SubnetRow& subnet) const {
  // Both sides ascend by layer, so one step through the positions meets every access once.
  std::size_t next = 0;
  for (int position = 0; position < table_.positions(); ++position) {
    const LayerRow& layer = table_.layer(table_.LayerAt(position, subnet.choices));
    if (!layer.versioned) continue;
    const bool found = next < subnet.accesses.size() && subnet.accesses[next].layer == layer.layer;
    if (!found) {
      if (next < subnet.accesses.size() && subnet.accesses[next].layer < layer.layer) break;
      return fmt::format("has no access of {}, which it uses", layer.name);
    }
    ++next;
  }
  if (next == subnet.accesses.size()) return std::nullopt;
  const std::int32_t layer = subnet.accesses[next].layer;
  const bool twice = next > 0 && subnet.accesses[next - 1].layer == layer;
  return twice ? fmt::format("has two accesses of {}", table_.Name(layer))
               : fmt::format("has an access of {}, which it does not use or write",
                             table_.Name(layer));
}

std::optional<std::string> RowCheck::AccessProblem(const AccessRow& access) const {
  const auto about = [&](std::string_view problem) {
    return fmt::format("has an access of {} {}", table_.Name(access.layer), problem);
  };
  const auto is_version = [&](std::int64_t seq) { return seq >= -1 && seq < run_.subnets_planned; };
  if (!is_version(access.read_seq)) {
    return about(fmt::format("that read version {}, which cannot exist", access.read_seq));
  }
  if (!is_version(access.base_seq)) {
    return about(fmt::format("that updated version {}, which cannot exist", access.base_seq));
  }
  if (access.stage < 0 || access.stage >= stages_) {
    return about(fmt::format("on stage {} of {}", access.stage, stages_));
  }
  if (access.weights.has_value() != weights_ || access.optimizer_state.has_value() != weights_ ||
      access.gradients.has_value() != full_) {
    return about(fmt::format("whose digests are not those of level {}", run_.record_level));
  }
  return std::nullopt;
}

std::optional<std::string> RowCheck::ActivationProblem(const SubnetRow& subnet) const {
  if (!full_) return std::nullopt;
  const std::int64_t microbatches = rules_.microbatches;
  const std::int64_t positions = table_.positions();
  // They ascend, so as many different ones as there can be are all of them.
  std::int64_t different = 0;
  std::int64_t last = -1;
  for (const ActivationRow& row : subnet.activations) {
    if (row.microbatch < 0 || row.microbatch >= microbatches || row.position < 0 ||
        row.position >= positions) {
      return fmt::format("has an activation of micro-batch {}, position {}, which do not exist",
                         row.microbatch, row.position);
    }
    const std::int64_t place = row.microbatch * positions + row.position;
    different += place > last ? 1 : 0;
    last = place;
  }
  const std::int64_t wanted = microbatches * positions;
  if (different == wanted && std::ssize(subnet.activations) == wanted) return std::nullopt;
  if (different < std::ssize(subnet.activations)) {
    return fmt::format("has {} activations, of which some are there twice",
                       subnet.activations.size());
  }
  return fmt::format("has {} activations where level full has {}", subnet.activations.size(),
                     wanted);
}

std::optional<std::string> EvaluationProblem(const EvaluationRow& row, const LayerTable& table) {
  if (const auto problem = table.ChoicesProblem(row.choices)) {
    return fmt::format("evaluation {} {}", row.index, *problem);
  }
  if (row.total < 1 || row.correct < 0 || row.correct > row.total) {
    return fmt::format("evaluation {} counts {} of {} samples correct", row.index, row.correct,
                       row.total);
  }
  return std::nullopt;
}

}  // namespace verbatim
