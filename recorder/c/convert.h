// From what the C interface takes to what a recorder of steps takes. Errors are kUsage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "recorder/c/verbatim_recorder.h"
#include "recorder/digest.h"
#include "recorder/step_recorder.h"

namespace verbatim::c {

inline constexpr const char* kLibraryVersion = VERBATIM_VERSION;

struct RunParts {
  StepRun run;
  std::vector<EnvironmentRow> environment;
  StepRecorderOptions options;
};

/// An empty string of a null pointer.
std::string Text(const char* text);

Result<RunParts> ConvertRun(const verbatim_run* run);
Result<std::vector<StepLayer>> ConvertLayers(const verbatim_layer* layers, std::size_t count);
Result<StepRow> ConvertStep(const verbatim_step* step);
/// Checks dtype, shape and bytes; the view is of the caller's memory.
Result<TensorView> ConvertTensor(const verbatim_tensor& tensor);

}  // namespace verbatim::c
