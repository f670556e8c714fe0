// `--explain`: names the tensor, the operator and the element behind a first difference.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// Executes the subnet of the verdict's first difference again, once as `record` says that it was
/// run and once as `reference` says, or, without one, as the sequential reference; adds what parts
/// first to the verdict. Where that cannot be done the verdict says why. invocation.engine must
/// not be null. Does nothing without a first difference.
void ExplainFirstDifference(const RecordReader& record, const RecordReader* reference,
                            const std::optional<std::filesystem::path>& data,
                            const Invocation& invocation, Verdict& verdict);

/// Adds --explain.
CLI::Option* AddExplainOption(CLI::App& command, bool& explain);

}  // namespace verbatim
