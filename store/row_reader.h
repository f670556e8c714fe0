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

  std::int64_t Int(std::int64_t min, std::int64_t max) {
    const bool is_number = sqlite3_column_type(statement_, ++column_) == SQLITE_INTEGER;
    const std::int64_t value = sqlite3_column_int64(statement_, column_);
    if (is_number && value >= min && value <= max) [[likely]]
      return value;
    ReportNumber(min, max);
    return min;
  }
  /// From 0 to the largest int32.
  std::int32_t Index() { return static_cast<std::int32_t>(Int(0, kInt32Max)); }
  /// -1 or a seq.
  std::int64_t Version();
  /// `if_null` where the column is null.
  std::int64_t VersionOr(std::int64_t if_null) { return SkipNull() ? if_null : Version(); }
  Digest Blob16() {
    Digest digest;
    const bool is_blob = sqlite3_column_type(statement_, ++column_) == SQLITE_BLOB;
    const std::string_view bytes = Bytes();
    if (is_blob && bytes.size() == digest.bytes.size()) [[likely]] {
      std::memcpy(digest.bytes.data(), bytes.data(), digest.bytes.size());
    } else {
      ReportType("a digest of 16 bytes");
    }
    return digest;
  }
  std::optional<Digest> OptionalBlob16() {
    if (SkipNull()) return std::nullopt;
    return Blob16();
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
  static constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

  /// Passes over the next column where it is null.
  bool SkipNull() {
    const bool is_null = sqlite3_column_type(statement_, column_ + 1) == SQLITE_NULL;
    column_ += is_null ? 1 : 0;
    return is_null;
  }
  /// Of the current column.
  std::string_view Bytes() const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column_));
    return {data == nullptr ? "" : data,
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_))};
  }
  std::string_view TextView();
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
