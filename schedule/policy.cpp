#include "schedule/policy.h"

#include <fmt/format.h>

namespace verbatim {
namespace {

/// Finishing what is started frees activations and versions soonest.
std::optional<Task> BackwardFirst(const ReadyView& view) {
  if (view.update) return view.update;
  return view.backward ? view.backward : view.forward;
}

class CausalPolicy : public Policy {
 public:
  bool MayStart(const StartView& view) const override { return view.unfinished_predecessors == 0; }
  bool MayUpdate(const StartView& view) const override { return view.unfinished_predecessors == 0; }
  std::optional<Task> Choose(const ReadyView& view) const override { return BackwardFirst(view); }
};

class SequentialPolicy : public Policy {
 public:
  bool MayStart(const StartView& view) const override { return !view.earlier_unfinished; }
  bool MayUpdate(const StartView&) const override { return true; }
  std::optional<Task> Choose(const ReadyView& view) const override {
    return view.running > 0 ? std::nullopt : BackwardFirst(view);
  }
};

class AsynchronousPolicy : public Policy {
 public:
  bool MayStart(const StartView&) const override { return true; }
  bool MayUpdate(const StartView&) const override { return true; }
  std::optional<Task> Choose(const ReadyView& view) const override { return BackwardFirst(view); }
};

}  // namespace

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name) {
  if (name == "causal") return std::make_unique<CausalPolicy>();
  if (name == "sequential") return std::make_unique<SequentialPolicy>();
  if (name == "asynchronous") return std::make_unique<AsynchronousPolicy>();
  return UsageError(fmt::format("--policy {}: no such policy", name),
                    "use causal, sequential or asynchronous");
}

}  // namespace verbatim
