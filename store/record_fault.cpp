#include "store/record_fault.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "store/packed_rows.h"
#include "store/sqlite_boundary.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

/// Executes `change` on the open record, in one transaction.
template <typename Change>
Status ChangeRecord(const fs::path& path, const Change& change) {
  std::unique_ptr<SQLite::Database> database;
  return AtSqliteBoundary(path, Doing::kWriting, database, [&]() -> Status {
    database = std::make_unique<SQLite::Database>(path.string(), SQLite::OPEN_READWRITE);
    Transaction transaction(*database, "BEGIN IMMEDIATE");
    RETURN_IF_ERROR(change(*database));
    transaction.Commit();
    return {};
  });
}

/// The accesses of one subnet; nothing where it has no row.
Result<std::optional<std::vector<AccessRow>>> ReadAccesses(SQLite::Database& database,
                                                           std::int64_t seq) {
  SQLite::Statement read(database, "SELECT accesses FROM subnets WHERE seq = ?");
  read.bind(1, seq);
  if (!read.executeStep()) return std::nullopt;
  std::vector<AccessRow> accesses;
  if (const auto problem = UnpackAccesses(seq, read.getColumn(0).getString(), accesses)) {
    return BadInput(fmt::format("subnet {}: column accesses {}", seq, *problem));
  }
  return accesses;
}

}  // namespace

Status RewriteAccessRow(const fs::path& path, std::int64_t seq, std::int32_t layer) {
  return ChangeRecord(path, [&](SQLite::Database& database) -> Status {
    ASSIGN_OR_RETURN(auto accesses, ReadAccesses(database, seq));
    const auto access = accesses
                            ? std::find_if(accesses->begin(), accesses->end(),
                                           [&](const AccessRow& row) { return row.layer == layer; })
                            : std::vector<AccessRow>::iterator();
    if (!accesses || access == accesses->end() || !access->weights) {
      return Failed(fmt::format("{}: subnet {} has no weights digest of layer {} to rewrite",
                                path.string(), seq, layer));
    }
    access->weights->bytes[0] ^= 1;
    const std::string packed = PackAccesses(seq, *accesses);
    SQLite::Statement write(database, "UPDATE subnets SET accesses = ? WHERE seq = ?");
    write.bind(1, packed.data(), static_cast<int>(packed.size()));
    write.bind(2, seq);
    write.exec();
    return {};
  });
}

Status DeleteSubnetRow(const fs::path& path, std::int64_t seq) {
  return ChangeRecord(path, [&](SQLite::Database& database) -> Status {
    SQLite::Statement statement(database, "DELETE FROM subnets WHERE seq = ?");
    statement.bind(1, seq);
    const int deleted = statement.exec();
    if (deleted == 1) return {};
    return Failed(fmt::format("{} has no subnet {} to delete", path.string(), seq));
  });
}

Status TruncateFile(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!error) fs::resize_file(path, size / 2, error);
  if (!error) return {};
  return Failed(fmt::format("{} cannot be cut: {}", path.string(), error.message()));
}

}  // namespace verbatim
