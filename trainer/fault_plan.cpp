#include "trainer/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "schedule/causal_graph.h"

namespace verbatim {
namespace {

/// What is drawn: `a` of a key.
enum Draw : std::uint32_t { kSeqDraw = 0, kLayerDraw = 1, kWithinDraw = 2 };

KeyedRandom Draws(std::uint64_t seed, Draw draw, FaultKind kind, std::int64_t seq) {
  return KeyedRandom({seed, RandomPurpose::kFault, draw, static_cast<std::uint32_t>(kind),
                      static_cast<std::uint32_t>(seq)});
}

template <typename T>
const T& DrawFrom(const std::vector<T>& choices, KeyedRandom random) {
  return choices[random.Below(static_cast<std::uint32_t>(choices.size()))];
}

/// A layer of a subnet where a fault can show.
struct Candidate {
  const Layer* layer;
  std::int64_t predecessor;
};

/// The one whose work the fault undoes: an optimizer's state is of the version updated.
std::int64_t PredecessorOf(FaultKind kind, const CausalPredecessors& predecessors) {
  return kind == FaultKind::kStaleOptimizer ? predecessors.base : predecessors.read;
}

bool KeepsState(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerKind::kSgd) return optimizer.momentum != 0.0;
  return optimizer.beta1 != 0.0 || optimizer.beta2 != 0.0;
}

/// Whether the fault can show where a subnet uses `layer` after `predecessor`.
bool CanShow(FaultKind kind, const Spec& spec, const Layer& layer, std::int64_t predecessor) {
  switch (kind) {
    case FaultKind::kDroppedDependency:
    case FaultKind::kStaleOptimizer:
      return predecessor >= 0;
    case FaultKind::kStaleRead:  // an update at rate 0 leaves nothing stale
      return predecessor >= 0 && LearningRate(spec.training, predecessor) != 0.0;
    case FaultKind::kDropoutKey:
      return layer.op.dropout > 0.0;
    default:
      return layer.IsVersioned();
  }
}

bool HasLayer(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSwappedSamples:
    case FaultKind::kThreadCount:
    case FaultKind::kDeletedRow:
    case FaultKind::kTruncatedFile:
      return false;
    default:
      return true;
  }
}

std::optional<Phase> PhaseOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDroppedDependency:
    case FaultKind::kStaleRead:
    case FaultKind::kDropoutKey:
      return Phase::kForward;
    case FaultKind::kGradientOrder:
      return Phase::kBackward;
    case FaultKind::kBitFlip:
    case FaultKind::kLostUpdate:
    case FaultKind::kStaleOptimizer:
    case FaultKind::kRewrittenRow:
      return Phase::kUpdate;
    default:
      return std::nullopt;
  }
}

/// Whether only digests of layers tell that something is wrong, at the place itself.
bool NeedsDigests(FaultKind kind) {
  return PhaseOf(kind) == Phase::kBackward || PhaseOf(kind) == Phase::kUpdate;
}

/// What of the run as a whole keeps the fault from showing.
Status CheckRun(FaultKind kind, const FaultSetting& setting) {
  const std::string name = fmt::format("fault {}", ToString(kind));
  const TrainingSpec& training = setting.spec.training;
  if (setting.policy == "asynchronous") {
    return UsageError(name + ": an asynchronous run differs from the reference by itself",
                      "use --policy causal");
  }
  if (NeedsDigests(kind) && setting.spec.record_level == RecordLevel::kLosses) {
    return UsageError(name + ": a record at level losses has no digests that could show it",
                      "record more: --record weights or full");
  }
  if (kind == FaultKind::kGradientOrder && training.microbatches < 3) {
    return UsageError(fmt::format("{}: two gradients have one sum in either order, and the spec "
                                  "has training.microbatches {}",
                                  name, training.microbatches),
                      "set training.microbatches to 3 or more");
  }
  if (kind == FaultKind::kStaleOptimizer && !KeepsState(training.optimizer)) {
    return UsageError(name + ": the spec's optimizer keeps no state between updates",
                      "give SGD a momentum, or use adam or adamw");
  }
  if (kind == FaultKind::kSwappedSamples && training.batch < 2) {
    return UsageError(name + ": the spec has one sample per batch", "set training.batch to 2");
  }
  if (kind == FaultKind::kThreadCount && !setting.on_cpu) {
    return UsageError(name + ": a GPU's sums do not depend on the processor's threads",
                      "use --device cpu");
  }
  return {};
}

/// Why no layer of a subnet qualifies, for a message.
const char* WhatIsMissing(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDroppedDependency:
    case FaultKind::kStaleOptimizer:
      return "uses no layer that an earlier one has updated";
    case FaultKind::kStaleRead:
      return "uses no layer that an earlier one has changed";
    case FaultKind::kDropoutKey:
      return "uses no layer with dropout";
    default:
      return "uses no layer that is trained";
  }
}

class Planner {
 public:
  Planner(const Fault& fault, const FaultSetting& setting) : fault_(fault), setting_(setting) {}

  Result<FaultPlan> Plan() const {
    RETURN_IF_ERROR(CheckRun(fault_.kind, setting_));
    FaultPlan plan{fault_.kind, {}, -1};
    plan.place.phase = PhaseOf(fault_.kind);
    if (fault_.kind == FaultKind::kTruncatedFile) return plan;
    ASSIGN_OR_RETURN(const std::int64_t seq, ChooseSeq());
    plan.place.seq = seq;
    if (!HasLayer(fault_.kind)) return plan;
    const Candidate chosen =
        DrawFrom(CandidatesAt(seq), Draws(setting_.spec.seed, kLayerDraw, fault_.kind, seq));
    plan.place.layer = chosen.layer->id;
    plan.place.layer_name = chosen.layer->name;
    plan.predecessor = chosen.predecessor;
    return plan;
  }

 private:
  std::int64_t Subnets() const { return setting_.spec.training.subnets; }

  /// Visits the stream until `visit` returns false.
  void Walk(const std::function<bool(std::int64_t, std::vector<Candidate>)>& visit) const {
    CausalGraph graph(setting_.space);
    for (std::int64_t seq = 0; seq < Subnets(); ++seq) {
      const Choices choices = setting_.sampler.Draw(seq);
      const auto predecessors = graph.Add(seq, choices);
      std::vector<Candidate> candidates;
      for (int position = 0; position < setting_.space.positions(); ++position) {
        const Layer& layer = setting_.space.LayerAt(position, choices);
        const std::int64_t predecessor = PredecessorOf(fault_.kind, predecessors[position]);
        if (CanShow(fault_.kind, setting_.spec, layer, predecessor)) {
          candidates.push_back({&layer, predecessor});
        }
      }
      if (!visit(seq, std::move(candidates))) return;
    }
  }

  std::vector<Candidate> CandidatesAt(std::int64_t wanted) const {
    std::vector<Candidate> found;
    Walk([&](std::int64_t seq, std::vector<Candidate> candidates) {
      if (seq == wanted) found = std::move(candidates);
      return seq < wanted;
    });
    return found;
  }

  /// Subnets where the fault can show, in order.
  std::vector<std::int64_t> QualifyingSubnets() const {
    std::vector<std::int64_t> subnets;
    Walk([&](std::int64_t seq, const std::vector<Candidate>& candidates) {
      if (!HasLayer(fault_.kind) || !candidates.empty()) subnets.push_back(seq);
      return true;
    });
    return subnets;
  }

  Result<std::int64_t> ChooseSeq() const {
    if (fault_.seq && *fault_.seq >= Subnets()) {
      return UsageError(
          fmt::format("fault {}: the run's subnets are 0 to {}", ToString(fault_), Subnets() - 1));
    }
    const std::vector<std::int64_t> subnets = QualifyingSubnets();
    if (subnets.empty()) {
      return UsageError(fmt::format("fault {}: no subnet of this run could show it: every one {}",
                                    ToString(fault_), WhatIsMissing(fault_.kind)));
    }
    return fault_.seq ? CheckSeq(subnets) : DrawSeq(subnets);
  }

  Result<std::int64_t> CheckSeq(const std::vector<std::int64_t>& subnets) const {
    const std::int64_t seq = *fault_.seq;
    const auto next = std::lower_bound(subnets.begin(), subnets.end(), seq);
    if (next != subnets.end() && *next == seq) return seq;
    const std::int64_t nearest = next == subnets.end() ? subnets.back() : *next;
    return UsageError(
        fmt::format("fault {}: subnet {} {}", ToString(fault_), seq, WhatIsMissing(fault_.kind)),
        fmt::format("subnet {} does: {}@{}", nearest, ToString(fault_.kind), nearest));
  }

  std::int64_t DrawSeq(const std::vector<std::int64_t>& subnets) const {
    std::vector<std::int64_t> middle;
    for (const std::int64_t seq : subnets) {
      if (seq >= Subnets() / 3 && seq < Subnets() - Subnets() / 3) middle.push_back(seq);
    }
    return DrawFrom(middle.empty() ? subnets : middle,
                    Draws(setting_.spec.seed, kSeqDraw, fault_.kind, 0));
  }

  const Fault& fault_;
  const FaultSetting& setting_;
};

}  // namespace

std::string ToString(const InjectedPlace& place) {
  if (!place.seq) return "the middle of the file";
  std::string text = fmt::format("subnet {}", *place.seq);
  if (place.layer) text += ", layer " + place.layer_name;
  if (place.phase) text += fmt::format(", {}", ToString(*place.phase));
  return text;
}

std::string ToString(const FaultPlan& plan) {
  std::string text = ToString(Fault{plan.kind, plan.place.seq});
  if (plan.place.layer) text += " " + plan.place.layer_name;
  if (plan.place.phase) text += fmt::format(" {}", ToString(*plan.place.phase));
  return text;
}

Result<FaultPlan> PlanFault(const Fault& fault, const FaultSetting& setting) {
  return Planner(fault, setting).Plan();
}

KeyedRandom FaultDraws(const FaultPlan& plan, std::uint64_t seed) {
  return Draws(seed, kWithinDraw, plan.kind, plan.place.seq.value_or(0));
}

}  // namespace verbatim
