// Where SQLite's exceptions end: each becomes an Error that names the file and what to do.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"

namespace verbatim {

/// What was being done with the record, which decides the kind of error and its hint.
enum class Doing { kReading, kWriting };

/// `system_error` is the errno behind it (sqlite3_system_errno), or 0.
Error TranslateSqliteError(int code, const std::string& what, int system_error,
                           const std::filesystem::path& path, Doing doing);

/// errno of the connection's latest failed system call; `database` may be null.
int SystemErrorOf(SQLite::Database* database);

/// Calls `body`, which returns a Status or a Result, and translates what SQLite throws in it.
/// `database`, where errno is asked for, may be null, and may become so meanwhile.
template <typename Body>
auto AtSqliteBoundary(const std::filesystem::path& path, Doing doing,
                      const std::unique_ptr<SQLite::Database>& database, const Body& body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const SQLite::Exception& exception) {
    return tl::unexpected(TranslateSqliteError(exception.getErrorCode(), exception.what(),
                                               SystemErrorOf(database.get()), path, doing));
  }
}

/// Changes the journal mode, and returns the one that is in force then. The statement gives its row
/// before it commits: whoever reads the row alone never learns that the commit failed.
std::string SetJournalMode(SQLite::Database& database, const std::string& mode);

/// A transaction that is rolled back unless committed. Inside another one it does nothing.
class Transaction {
 public:
  /// `begin` is "BEGIN" or "BEGIN IMMEDIATE".
  Transaction(SQLite::Database& database, const char* begin);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit();

 private:
  SQLite::Database& database_;
  bool is_outermost_;
};

}  // namespace verbatim
