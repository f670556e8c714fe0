// What `verbatim train --inject` does to a run: plans the fault, gives the training its probe,
// damages the closed record, and says what happened. Linked into verbatim-engine only.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/engine.h"
#include "trainer/experiment.h"
#include "trainer/fault_injection.h"

namespace verbatim {

class InjectedFault {
 public:
  /// No fault where the request names none. Errors are ParseFault's and PlanFault's.
  static Result<InjectedFault> Plan(const TrainRequest& request, const Experiment& experiment);

  /// For TrainingOptions::probe; null where training is left alone.
  StageProbe* probe() const { return probe_.get(); }
  /// Adds the fact that says what was injected.
  void AddTo(std::vector<EnvironmentRow>& environment) const;
  /// Makes a fault of the record in the closed one, whose subnets 0 … subnets-1 are there.
  Status DamageRecord(const std::filesystem::path& path, std::int64_t subnets);
  /// The summary's line, or nothing: whether the run came to the fault's place.
  std::string Describe() const;

 private:
  std::optional<FaultPlan> plan_;
  std::unique_ptr<FaultInjection> probe_;
  bool damaged_ = false;
};

}  // namespace verbatim
