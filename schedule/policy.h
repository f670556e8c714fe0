// Scheduling policies: what a stage may start, and what it runs first.
//
// A policy is a pure function of what is ready and what is finished. Real runs and simulations ask
// the same object.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "schedule/task.h"

namespace verbatim {

/// What a policy may know when it decides whether a subnet may start its forward on a stage.
struct StartView {
  int unfinished_predecessors = 0;  ///< causal predecessors in the stage's range, not yet updated
  bool earlier_unfinished = false;  ///< whether any subnet with a lower seq is unfinished
};

/// The best ready task of each kind on a stage, by TaskOrder.
struct ReadyView {
  std::optional<Task> forward;
  std::optional<Task> backward;
};

/// Any thread; stateless.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Must stay true once it is: nothing that finishes may close a start again.
  virtual bool MayStart(const StartView& view) const = 0;
  /// Picks one of the view's tasks; nothing only where the view has none.
  virtual std::optional<Task> Choose(const ReadyView& view) const = 0;
};

/// "causal": CSP (NASPipe, ASPLOS'22, section 4): a subnet starts on a stage when all its causal
/// predecessors there have been updated; backward before forward, lowest subnet first.
/// "sequential": a subnet starts when all earlier ones are finished.
/// "asynchronous": a subnet starts whenever the stage is free. Not reproducible: the negative
/// control. kUsage for another name.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name);

}  // namespace verbatim
