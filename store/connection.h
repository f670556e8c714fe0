// A read-only SQLite connection to a record, however its writer left it.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>

#include "base/status.h"
#include "store/record.h"

namespace verbatim {

struct ReadConnection {
  std::unique_ptr<SQLite::Database> database;
  RunKind kind = RunKind::kSupernet;
};

/// Checks that `path` is a record of a version that this program reads, and opens it.
///
/// A record that nobody closed stays in WAL mode, which SQLite reads with the help of two files
/// beside it. Where those cannot be made (read-only folder or medium), nobody can be writing
/// either, so the record and its WAL are read without locks.
Result<ReadConnection> OpenForReading(const std::filesystem::path& path);

}  // namespace verbatim
