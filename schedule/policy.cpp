#include "schedule/policy.h"

#include <fmt/format.h>

namespace verbatim {
namespace {

/// Finishing what is started frees activations and versions soonest.
class BackwardFirst : public Policy {
 public:
  std::optional<Task> Choose(const ReadyView& view) const override {
    return view.backward ? view.backward : view.forward;
  }
};

class CausalPolicy : public BackwardFirst {
 public:
  bool MayStart(const StartView& view) const override { return view.unfinished_predecessors == 0; }
};

class SequentialPolicy : public BackwardFirst {
 public:
  bool MayStart(const StartView& view) const override { return !view.earlier_unfinished; }
};

class AsynchronousPolicy : public BackwardFirst {
 public:
  bool MayStart(const StartView&) const override { return true; }
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
