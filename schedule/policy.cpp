#include "schedule/policy.h"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace verbatim {
namespace {

/// Finishing what is started frees activations and versions soonest.
std::optional<Task> BackwardFirst(
    const ReadyView& view, std::int64_t held_max = std::numeric_limits<std::int64_t>::max()) {
  if (view.update) return view.update;
  if (view.backward) return view.backward;
  return view.held < held_max ? view.forward : std::nullopt;
}

/// Micro-batches for each later stage: enough to hide that subnets cost differently, and few enough
/// to take no more memory than backward first, by simulation and by measurement.
constexpr std::int64_t kAheadPerStage = 4;

class CausalPolicy : public Policy {
 public:
  bool MayStart(const StartView& view) const override { return view.unfinished_predecessors == 0; }
  bool MayUpdate(const StartView& view) const override { return view.unfinished_predecessors == 0; }
  std::optional<Task> Choose(const ReadyView& view) const override {
    const std::int64_t ahead = kAheadPerStage * (view.stages - 1 - view.stage);
    if (!view.update && view.forward && view.held < ahead) return view.forward;
    return BackwardFirst(view);
  }
};

/// A version may still be on its way to the stage when its writer is finished.
class OneSubnetPolicy : public Policy {
 public:
  bool MayStart(const StartView& view) const override {
    return !view.earlier_unfinished && view.unfinished_predecessors == 0;
  }
  bool MayUpdate(const StartView& view) const override { return view.unfinished_predecessors == 0; }
};

class SequentialPolicy : public OneSubnetPolicy {
 public:
  std::optional<Task> Choose(const ReadyView& view) const override {
    return view.running > 0 ? std::nullopt : BackwardFirst(view);
  }
};

class GPipePolicy : public OneSubnetPolicy {
 public:
  std::optional<Task> Choose(const ReadyView& view) const override {
    if (view.update) return view.update;
    if (view.forwards_of_backward == view.microbatches) return view.backward;
    return view.forward;
  }
};

class OneForwardOneBackwardPolicy : public OneSubnetPolicy {
 public:
  std::optional<Task> Choose(const ReadyView& view) const override {
    return BackwardFirst(view, /*held_max=*/view.stages - view.stage);
  }
};

class PipeDreamPolicy : public Policy {
 public:
  bool MayStart(const StartView&) const override { return true; }
  bool MayUpdate(const StartView&) const override { return true; }
  std::optional<Task> Choose(const ReadyView& view) const override {
    return BackwardFirst(view, std::int64_t{view.stages - view.stage} * view.microbatches);
  }
};

class AsynchronousPolicy : public Policy {
 public:
  bool MayStart(const StartView&) const override { return true; }
  bool MayUpdate(const StartView&) const override { return true; }
  std::optional<Task> Choose(const ReadyView& view) const override { return BackwardFirst(view); }
};

constexpr PolicyKind kKinds[] = {
    {"causal", true, true}, {"sequential", true, true},  {"gpipe", true, true},
    {"1f1b", true, true},   {"pipedream", false, false}, {"asynchronous", false, true},
};

std::string Names(bool trainable_only) {
  std::string names;
  for (const PolicyKind& kind : kKinds) {
    if (trainable_only && !kind.is_trainable) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  }
  return names;
}

}  // namespace

std::span<const PolicyKind> PolicyKinds() {
  return kKinds;
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name) {
  if (name == "causal") return std::make_unique<CausalPolicy>();
  if (name == "sequential") return std::make_unique<SequentialPolicy>();
  if (name == "gpipe") return std::make_unique<GPipePolicy>();
  if (name == "1f1b") return std::make_unique<OneForwardOneBackwardPolicy>();
  if (name == "pipedream") return std::make_unique<PipeDreamPolicy>();
  if (name == "asynchronous") return std::make_unique<AsynchronousPolicy>();
  return UsageError(fmt::format("--policy {}: no such policy", name),
                    fmt::format("use one of {}", Names(/*trainable_only=*/false)));
}

Status CheckTrainable(std::string_view name) {
  RETURN_IF_ERROR(MakePolicy(name));
  for (const PolicyKind& kind : kKinds) {
    if (kind.name == name && kind.is_trainable) return {};
  }
  return UsageError(fmt::format("--policy {}: this policy can only be simulated", name),
                    fmt::format("use one of {}, or verbatim simulate", Names(true)));
}

}  // namespace verbatim
