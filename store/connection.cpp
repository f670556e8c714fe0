#include "store/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cctype>
#include <string>

#include "store/format.h"
#include "store/record_file.h"
#include "store/schema.h"
#include "store/sqlite_boundary.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

Result<RunKind> CheckIsReadable(const fs::path& path) {
  ASSIGN_OR_RETURN(const SqliteHeader header, ReadSqliteHeader(path));
  if (header.application_id != kApplicationId) {
    return BadInput(fmt::format("{} is an SQLite file, but not a verbatim record", path.string()),
                    "check the path");
  }
  if (const auto kind = KindOfSchema(header.user_version)) return *kind;
  return BadInput(fmt::format("{} has format version {}; this program reads versions {} and {}",
                              path.string(), header.user_version, kSupernetSchema, kStepsSchema),
                  header.user_version < kSupernetSchema
                      ? "read it with the verbatim that wrote it (its table run names the "
                        "version), or train its spec again"
                      : "read it with a newer verbatim");
}

// Percent-encoded, for SQLite's "file:" names.
std::string UriOf(const fs::path& path, const char* parameters) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri + "?" + parameters;
}

// A record may come from anywhere: nothing in its schema is trusted, and pages are checked.
void Prepare(SQLite::Database& database) {
  database.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
  database.execAndGet("SELECT count(*) FROM sqlite_master");
}

DatabasePointer OpenShared(const fs::path& path) {
  auto database = std::make_unique<SQLite::Database>(
      path.string(), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, kBusyTimeoutMs);
  Prepare(*database);
  return database;
}

DatabasePointer OpenAlone(const fs::path& path) {
  std::error_code error;
  const auto wal_bytes = fs::file_size(CompanionFiles(path)[0], error);
  const bool has_wal = !error && wal_bytes > 0;
  auto database = std::make_unique<SQLite::Database>(
      UriOf(path, has_wal ? "mode=ro&vfs=unix-none" : "mode=ro&immutable=1"),
      SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX | SQLite::OPEN_URI);
  // In this locking mode SQLite keeps the WAL's index in memory instead of in a -shm file.
  if (has_wal) database->exec("PRAGMA locking_mode = EXCLUSIVE");
  Prepare(*database);
  return database;
}

// Whether the files beside a record's that its readers share cannot be written here. On a read-only
// disk SQLite also gives up on an index of the WAL that a killed writer has left half-made
// (SQLITE_PROTOCOL).
bool CannotShare(int code, const fs::path& path) {
  const int primary = code & 0xff;
  if (primary == SQLITE_PROTOCOL) return access(path.c_str(), W_OK) != 0;
  return primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY;
}

Status CheckTables(SQLite::Database& database, RunKind kind, const fs::path& path) {
  SQLite::Statement count(database,
                          "SELECT count(*) FROM sqlite_master WHERE type = ? AND name = ?");
  for (const SchemaObject& object : RecordSchema(kind)) {
    if (object.type != "table") continue;
    count.reset();
    count.bind(1, object.type);
    count.bind(2, object.name);
    count.executeStep();
    if (count.getColumn(0).getInt() == 1) continue;
    return BadInput(fmt::format("{} is damaged: it has no table {}", path.string(), object.name),
                    "restore it from a copy");
  }
  return {};
}

}  // namespace

Result<ReadConnection> OpenForReading(const fs::path& path) {
  ASSIGN_OR_RETURN(const RunKind kind, CheckIsReadable(path));
  const fs::path absolute = fs::absolute(path);
  DatabasePointer database;
  return AtSqliteBoundary(path, Doing::kReading, database, [&]() -> Result<ReadConnection> {
    try {
      database = OpenShared(absolute);
    } catch (const SQLite::Exception& exception) {
      if (!CannotShare(exception.getErrorCode(), absolute)) throw;
      database = OpenAlone(absolute);
    }
    RETURN_IF_ERROR(CheckTables(*database, kind, path));
    return ReadConnection{std::move(database), kind};
  });
}

}  // namespace verbatim
