// Reads one row's columns and checks every value, so that a damaged row is an error, never a
// surprise.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/hash256.h"
#include "store/format.h"
#include "store/query.h"
#include "store/record.h"

namespace verbatim {

/// The current row of a query. Columns are taken in their order, each once; after the first that
/// is wrong, what follows means nothing, and `problem` says what it was.
class RowReader {
 public:
  /// `key_columns`: how many of the first columns name the row in an error message.
  RowReader(const Query& query, const char* table, int key_columns)
      : statement_(query.statement()), table_(table), key_columns_(key_columns) {}

  /// The columns from here on are another table's, which a problem names.
  void GoOnWith(const char* table) { table_ = table; }

  std::int64_t Int(std::int64_t min, std::int64_t max) {
    sqlite3_value* const column = Next();
    const std::int64_t value = sqlite3_value_int64(column);
    if (sqlite3_value_type(column) == SQLITE_INTEGER && value >= min && value <= max) [[likely]]
      return value;
    ReportNumber(min, max);
    return min;
  }
  /// From 0 to the largest int32.
  std::int32_t Index() { return static_cast<std::int32_t>(Int(0, kInt32Max)); }
  /// -1 or a seq.
  std::int64_t Version() { return Int(-1, kSeqMax); }
  Digest Blob16() { return Fixed<Digest>("a digest of 16 bytes"); }
  Hash256 Blob32() { return Fixed<Hash256>("a hash of 32 bytes"); }
  /// Bytes that live until the next column or row is asked for.
  std::string_view Blob() {
    sqlite3_value* const column = Next();
    if (sqlite3_value_type(column) == SQLITE_BLOB) [[likely]]
      return Bytes(column);
    ReportType("bytes");
    return {};
  }
  /// Nothing where the column is null.
  std::optional<std::string_view> OptionalBlob() {
    if (SkipNull()) return std::nullopt;
    return Blob();
  }
  /// Says what is wrong with the column just taken, where something is.
  void Require(const std::optional<std::string>& problem) {
    if (problem) [[unlikely]]
      Report(*problem);
  }
  std::string Text() { return std::string(TextView()); }
  /// Empty where the column is null.
  std::string OptionalText() { return SkipNull() ? std::string() : Text(); }
  /// Reuse the vectors' memory.
  void Choices(std::vector<std::uint16_t>& choices);
  void Samples(std::vector<std::uint32_t>& samples);
  RunStatus Status();

  /// "table subnets, row seq 5: column loss_bits …", or nothing where every value was sound.
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  template <typename Value>
  Value Fixed(const char* expected) {
    Value value;
    sqlite3_value* const column = Next();
    const std::string_view bytes = Bytes(column);
    const bool is_blob = sqlite3_value_type(column) == SQLITE_BLOB;
    if (is_blob && bytes.size() == value.bytes.size()) [[likely]] {
      std::memcpy(value.bytes.data(), bytes.data(), value.bytes.size());
    } else {
      ReportType(expected);
    }
    return value;
  }

  static constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

  /// Asked once per column, for each of SQLite's column calls looks the column up again. Values are
  /// of this row and this thread only, which is all that the connection promises for them.
  sqlite3_value* Next() { return sqlite3_column_value(statement_, ++column_); }
  /// Passes over the next column where it is null.
  bool SkipNull() {
    const bool is_null = sqlite3_value_type(Next()) == SQLITE_NULL;
    column_ -= is_null ? 0 : 1;
    return is_null;
  }
  static std::string_view Bytes(sqlite3_value* column) {
    const auto* data = static_cast<const char*>(sqlite3_value_blob(column));
    return {data == nullptr ? "" : data, static_cast<std::size_t>(sqlite3_value_bytes(column))};
  }
  std::string_view TextView();
  std::string Key() const;
  void ReportNumber(std::int64_t min, std::int64_t max);
  void ReportType(const char* expected);
  void Report(const std::string& what);

  sqlite3_stmt* statement_;
  const char* table_;
  int key_columns_;
  int column_ = -1;
  std::optional<std::string> problem_;
};

}  // namespace verbatim
