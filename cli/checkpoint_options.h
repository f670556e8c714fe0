// `--checkpoint-every` and `--keep-checkpoints`, as every command that records a training takes
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace verbatim {

struct CheckpointOptions {
  std::int64_t every = 1000;  ///< subnets from one checkpoint to the next; 0: only at the end
  std::int64_t keep = 2;      ///< the newest so many stay; 0: none are taken
  bool were_given = false;    ///< whether one of the two was typed
};

/// `options` holds the defaults and must outlive the parsing.
void AddCheckpointOptions(CLI::App& command, CheckpointOptions& options);

/// Whether checkpoints are to be taken under this policy. kUsage where they were asked for and
/// cannot be had.
Result<bool> WantsCheckpoints(const CheckpointOptions& options, const std::string& policy);

}  // namespace verbatim
