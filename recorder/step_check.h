// What a recorder of steps asks of what its caller passes. All functions are pure; errors are
// kUsage.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "recorder/step_recorder.h"

namespace verbatim {

/// Spec, level, layers and environment before the first step.
Status CheckStepRun(const StepRun& run, std::span<const StepLayer> layers,
                    std::span<const EnvironmentRow> environment);

/// Checks the rows of one run. The run and the layers outlive it.
class StepRowCheck {
 public:
  StepRowCheck(const StepRun& run, const std::vector<LayerRow>& layers,
               const std::vector<StepLayerKind>& kinds);

  /// `last_step`: the number of the step before, or -1.
  Status Check(const StepRow& row, std::int64_t last_step) const;

 private:
  Status CheckLayers(const StepRow& row) const;
  Status CheckDigests(const StepDigests& digests) const;
  Status CheckFacts(const StepFacts& facts) const;
  Status CheckCaptured(const StepRow& row) const;
  Status Has(const std::optional<Digest>& digest, const StepDigests& of, const char* what,
             bool is_allowed) const;
  const std::string& NameOf(std::int32_t layer) const;
  bool IsLayer(std::int32_t layer) const;

  const StepRun& run_;
  const std::vector<LayerRow>& layers_;
  const std::vector<StepLayerKind>& kinds_;
  std::vector<std::int32_t> versioned_;
};

}  // namespace verbatim
