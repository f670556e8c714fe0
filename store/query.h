// One prepared query, stepped through SQLite's own column calls: SQLiteCpp's columns each share
// ownership of their statement, which costs more than most values that they hold.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <cstdint>

namespace verbatim {

/// Throws SQLite::Exception, as SQLiteCpp does. `database` outlives it.
class Query {
 public:
  Query(SQLite::Database& database, const char* sql) : handle_(database.getHandle()) {
    Require(sqlite3_prepare_v2(handle_, sql, -1, &statement_, nullptr), SQLITE_OK);
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Parameters count from 1.
  void Bind(int parameter, std::int64_t value) {
    Require(sqlite3_bind_int64(statement_, parameter, value), SQLITE_OK);
  }
  /// Goes to the next row; false after the last.
  bool Step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    Require(code, SQLITE_DONE);
    return false;
  }
  /// Ends the query, so that it can be bound and stepped anew.
  void Reset() { sqlite3_reset(statement_); }
  /// For column calls on the current row.
  sqlite3_stmt* statement() const { return statement_; }

 private:
  void Require(int code, int expected) const {
    if (code != expected) throw SQLite::Exception(handle_, code);
  }

  sqlite3* handle_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace verbatim
