// `--explain`: names the tensor, the operator and the element behind a first difference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// Where and within what an explanation executes.
struct ExplainSetting {
  std::optional<std::filesystem::path> data;  ///< folder of the data set, if not the specs'
  /// What a stage may hold of layers, or as much as a side's layout needs, where that is more.
  std::optional<std::int64_t> device_memory;
};

/// Executes the subnet of the verdict's first difference again, once as `record` says that it was
/// run and once as `reference` says, or, without one, as the sequential reference; adds what parts
/// first to the verdict. Where that cannot be done the verdict says why. invocation.engine must
/// not be null. Does nothing without a first difference.
void ExplainFirstDifference(const RecordReader& record, const RecordReader* reference,
                            const ExplainSetting& setting, const Invocation& invocation,
                            Verdict& verdict);

/// Adds --explain.
CLI::Option* AddExplainOption(CLI::App& command, bool& explain);

}  // namespace verbatim
