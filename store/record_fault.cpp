#include "store/record_fault.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <system_error>

#include "store/format.h"
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

std::int64_t AccessKey(std::int64_t seq, std::int32_t layer) {
  return seq * kAccessKeyLayers + layer;
}

}  // namespace

Status RewriteAccessRow(const fs::path& path, std::int64_t seq, std::int32_t layer) {
  return ChangeRecord(path, [&](SQLite::Database& database) -> Status {
    SQLite::Statement read(database, "SELECT weights FROM accesses WHERE access = ?");
    read.bind(1, AccessKey(seq, layer));
    if (!read.executeStep() || read.getColumn(0).getBytes() == 0) {
      return Failed(fmt::format("{}: subnet {} has no weights digest of layer {} to rewrite",
                                path.string(), seq, layer));
    }
    std::string digest = read.getColumn(0).getString();
    digest[0] = static_cast<char>(digest[0] ^ 1);
    SQLite::Statement write(database, "UPDATE accesses SET weights = ? WHERE access = ?");
    write.bind(1, digest.data(), static_cast<int>(digest.size()));
    write.bind(2, AccessKey(seq, layer));
    write.exec();
    return {};
  });
}

Status DeleteSubnetRows(const fs::path& path, std::int64_t seq) {
  return ChangeRecord(path, [&](SQLite::Database& database) -> Status {
    int deleted = 0;
    for (const char* sql :
         {"DELETE FROM accesses WHERE access BETWEEN ?1 << 20 AND ?1 << 20 | 1048575",
          "DELETE FROM activity WHERE seq = ?1", "DELETE FROM activations WHERE seq = ?1",
          "DELETE FROM subnets WHERE seq = ?1"}) {
      SQLite::Statement statement(database, sql);
      statement.bind(1, seq);
      deleted = statement.exec();
    }
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
