// Binds and inserts one row of a record.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/digest.h"
#include "base/hash256.h"

namespace verbatim {

/// Binds one row's values in column order without copying them, then executes the statement. What
/// is bound must live until Run. Throws SQLite::Exception.
class InsertRow {
 public:
  explicit InsertRow(SQLite::Statement& statement) : statement_(statement) {
    statement_.tryReset();
  }

  InsertRow& Int(std::int64_t value) {
    statement_.bind(++column_, value);
    return *this;
  }
  InsertRow& Null() {
    statement_.bind(++column_);
    return *this;
  }
  InsertRow& Text(const std::string& value) {
    statement_.bindNoCopy(++column_, value);
    return *this;
  }
  InsertRow& Blob(const std::string& value) { return Bytes(value.data(), value.size()); }
  InsertRow& Blob(const Digest& value) { return Bytes(value.bytes.data(), value.bytes.size()); }
  InsertRow& Blob(const Hash256& value) { return Bytes(value.bytes.data(), value.bytes.size()); }
  InsertRow& Blob(const std::optional<std::string>& value) { return value ? Blob(*value) : Null(); }
  void Run() { statement_.exec(); }

 private:
  InsertRow& Bytes(const void* data, std::size_t size) {
    statement_.bindNoCopy(++column_, data, static_cast<int>(size));
    return *this;
  }

  SQLite::Statement& statement_;
  int column_ = 0;
};

}  // namespace verbatim
