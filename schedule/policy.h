// Scheduling policies: what a stage may start, and what it runs first.
//
// A policy is a pure function of what is ready and what is finished. Real runs and simulations ask
// the same object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "schedule/task.h"

namespace verbatim {

/// What a policy may know when it decides whether a subnet may start its forward on a stage, or
/// its update there.
struct StartView {
  int unfinished_predecessors = 0;  ///< in the stage's range, not yet updated (or not yet here)
  bool earlier_unfinished = false;  ///< whether any subnet with a lower seq is unfinished
};

/// What a stage could run now: the best ready task of each kind, by TaskOrder.
struct ReadyView {
  std::optional<Task> forward;
  std::optional<Task> backward;
  std::optional<Task> update;
  int stage = 0;
  int stages = 1;
  std::int32_t microbatches = 1;
  /// Micro-batches whose activations the stage holds: forward done or under way, backward not
  /// begun.
  std::int64_t held = 0;
  /// Forwards that the stage has begun of the subnet that `backward` belongs to.
  std::int32_t forwards_of_backward = 0;
  int running = 0;  ///< tasks that other stages are executing
};

/// Any thread; stateless.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Whether a subnet's forward may start, given the causal predecessors whose versions it reads.
  /// Must stay true once it is: nothing that finishes may close a start again.
  virtual bool MayStart(const StartView& view) const = 0;
  /// Whether a subnet's update may start, given the predecessors whose versions it updates. As
  /// above; always true where MayStart ignores predecessors.
  virtual bool MayUpdate(const StartView& view) const = 0;
  /// Picks one of the view's tasks, or nothing where the stage should wait.
  virtual std::optional<Task> Choose(const ReadyView& view) const = 0;
};

/// Every policy by its name (`--policy`).
///
/// "causal": CSP (NASPipe, ASPLOS'22, section 4): a subnet starts on a stage when all its causal
/// predecessors there have been updated; lowest subnet first; backward before forward, once the
/// stage holds a few micro-batches for each stage after it, so that those do not wait for work.
/// "sequential": one task at a time, a subnet when all earlier ones are finished.
/// "gpipe" (Huang et al., NeurIPS'19): one subnet at a time; a stage runs all its forwards, then
/// all its backwards. Idle for (S - 1) / (M + S - 1) of the time, on S equal stages.
/// "1f1b" (PipeDream-flush; Narayanan et al., ICML'21): likewise, but a stage runs a backward as
/// soon as it can and holds at most as many micro-batches as stages follow it, itself counted.
/// "pipedream" (Narayanan et al., SOSP'19): asynchronous 1F1B with weight stashing. Nothing waits
/// for a predecessor, but a stage holds micro-batches of at most as many subnets as stages follow
/// it, itself counted; each subnet's backward uses the version that its forward read.
/// "asynchronous": a subnet starts whenever the stage is free. Not reproducible: the negative
/// control.
struct PolicyKind {
  std::string_view name;
  bool is_causal;     ///< every run is equal to the sequential reference
  bool is_trainable;  ///< else for simulations only
};
std::span<const PolicyKind> PolicyKinds();

/// kUsage for another name.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name);

/// kUsage where `name` is none, or one for simulations only.
Status CheckTrainable(std::string_view name);

}  // namespace verbatim
