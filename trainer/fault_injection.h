// Injects a planned fault into a training, by reaching into the stages (docs/fault-injection.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "supernet/spec.h"
#include "trainer/fault_plan.h"
#include "trainer/stage_probe.h"

namespace verbatim {

/// A probe that makes one fault, once. It throws, which fails the run, where the fault would change
/// no bit: a fault that nobody could find would only seem to be missed.
class FaultInjection : public StageProbe {
 public:
  explicit FaultInjection(FaultPlan plan) : plan_(std::move(plan)) {}

  /// Whether the training has come to the place. Any thread.
  bool happened() const { return happened_; }

 protected:
  const FaultPlan& plan() const { return plan_; }
  bool IsSubnet(std::int64_t seq) const { return seq == plan_.place.seq; }
  bool IsLayer(const Layer& layer) const { return layer.id == plan_.place.layer; }
  bool IsPlace(std::int64_t seq, const Layer& layer) const {
    return IsSubnet(seq) && IsLayer(layer);
  }
  void Happened() { happened_ = true; }
  /// Throws unless `changes`.
  void RequireChange(bool changes) const;

 private:
  FaultPlan plan_;
  std::atomic<bool> happened_ = false;
};

/// `plan` is of `spec`, whose run computes with `threads_per_stage`. Null for a fault that is made
/// in the closed record (store/record_fault.h).
std::unique_ptr<FaultInjection> MakeFaultInjection(const FaultPlan& plan, const Spec& spec,
                                                   std::int64_t threads_per_stage);

}  // namespace verbatim
