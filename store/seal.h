// What the rows that are not subnets hash to, so that a change to any of them shows (docs/format.md,
// "Seals"). A record keeps these; a head states them. All functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash256.h"
#include "store/record.h"

namespace verbatim {

/// What equal runs have in common before their first subnet: effective spec, data set, and layers.
Hash256 StartSeal(const RunInfo& run, std::span<const LayerRow> layers);

/// What was true of the first run of the program and of each resumption when it began: program,
/// folder, command line, policy, level, layout, device, start, environment; `resumptions` may be a
/// prefix of all. Nothing in it changes later.
Hash256 CircumstancesSeal(const RunInfo& run, std::span<const EnvironmentRow> environment,
                          std::span<const ResumptionRow> resumptions);

/// How the run stands: status, detail, end, and the evaluations. Written anew when they change.
Hash256 EndSeal(const RunInfo& run, std::span<const EvaluationRow> evaluations);

/// One checkpoint's row: cut, time, versions and files.
Hash256 CheckpointSeal(const CheckpointRow& checkpoint);

}  // namespace verbatim
