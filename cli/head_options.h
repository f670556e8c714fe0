// Options about heads: those that a record or a proof is checked against, and those that a run
// leaves behind while it goes on.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/status.h"
#include "store/head.h"

namespace verbatim {

/// `--head FILE`, which may be given several times, and `--key PUB`. Returns the first.
CLI::Option* AddKeptHeadOptions(CLI::App& command, std::vector<std::filesystem::path>& heads,
                                std::filesystem::path& key);

/// What `train` and `resume` do about heads.
struct HeadOptions {
  std::filesystem::path file;  ///< empty: no heads
  std::int64_t every = 0;      ///< subnets; 0: only at the end
  std::filesystem::path key;   ///< secret; empty: not signed
};

/// `--head-file FILE`, `--head-every N` and `--sign KEY`.
void AddHeadOptions(CLI::App& command, HeadOptions& options);

/// What can be known before the work: that the file can be written and is no part of `record`, and
/// that the key can be read. kUsage where a new run's file of heads exists already: an earlier
/// run's heads are no heads of this one.
Status CheckHeadOptions(const HeadOptions& options, const std::filesystem::path& record,
                        bool is_new_run);

/// Signs a head, where there is a key, and adds it to the file (AppendHead). Empty without a file.
Result<std::function<Status(Head)>> HeadKeeper(const HeadOptions& options);

}  // namespace verbatim
