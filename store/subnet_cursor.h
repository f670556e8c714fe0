// The cursor behind RecordReader::Subnets.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "store/reader.h"

namespace verbatim {

/// Sequence ids first … last; the whole range includes negative ones, which are damage.
struct SeqBounds {
  std::int64_t first;
  std::int64_t last;
};
extern const SeqBounds kEverySeq;

/// `path` and `database` outlive the cursor; `kind` is the record's. Errors are RecordReader's.
Result<std::unique_ptr<SubnetCursor>> OpenSubnets(const std::filesystem::path& path,
                                                  const std::unique_ptr<SQLite::Database>& database,
                                                  RunKind kind, const SeqBounds& bounds,
                                                  const ReadOptions& options);

/// The error of a row or table that cannot be what a run wrote.
tl::unexpected<Error> Damaged(const std::filesystem::path& path, const std::string& problem);

}  // namespace verbatim
