// What is said when a device has no memory left in the middle of a run: which option needs less.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "schedule/task.h"
#include "trainer/training.h"

namespace verbatim {

/// Whether an allocation failed, on a device or on the host.
bool IsOutOfMemory(const std::exception& error);

/// Why a stage ended in the middle of a task; absent: between two.
std::string StageFailure(int stage, const std::optional<Task>& task, const std::exception& error,
                         const TrainingOptions& options);

/// Why the copying of layers to a stage, or from it, ended.
std::string MoveFailure(int stage, Transfer::Kind kind, const std::exception& error,
                        const TrainingOptions& options);

}  // namespace verbatim
