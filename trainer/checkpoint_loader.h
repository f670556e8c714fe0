// Loads a checkpoint into an experiment, to go on from it.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "store/record.h"
#include "trainer/experiment.h"

namespace verbatim {

/// Replaces all of `experiment.layers` by the checkpoint's, or none of them. kBadInput where a file
/// in `folder` is missing or damaged, or does not fit the experiment's spec; kFailed where one
/// cannot be read. Files are checked against their hashes, names, types and shapes. To train on,
/// set TrainingOptions::first to the checkpoint's cut.
Status LoadCheckpoint(const std::filesystem::path& folder, const CheckpointRow& checkpoint,
                      Experiment& experiment);

}  // namespace verbatim
