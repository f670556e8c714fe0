// Where the specs and the layouts of two records differ, setting by setting.
#pragma once

#include <string_view>
#include <vector>

#include "store/record.h"
#include "verify/verdict.h"

namespace verbatim {

/// Fields of the effective specs that differ, by dotted path ("training.lr.base",
/// "supernet.blocks.0.repeat"), sorted. Both specs can be parsed.
std::vector<SettingDifference> SpecDifferences(const RunInfo& a, const RunInfo& b);

/// Stages, subnets in flight, policy, device, record level and tool version.
std::vector<SettingDifference> LayoutDifferences(const RunInfo& a, const RunInfo& b);

/// Whether a spec's field may change what subnets compute. Names, folders, the record level, the
/// evaluation and, as long as no learning rate depends on it, the number of subnets may not.
bool BearsOnSubnets(std::string_view key, const RunInfo& a, const RunInfo& b);

}  // namespace verbatim
