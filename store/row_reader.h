// Reads one row's columns and checks every value, so that a damaged row is an error, never a
// surprise.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "store/record.h"

namespace verbatim {

/// The current row of a statement. Columns are taken in their order, each once; after the first
/// that is wrong, all further values are empty, and `problem` says what it was.
class RowReader {
 public:
  /// `key_columns`: how many of the first columns name the row in an error message.
  RowReader(SQLite::Statement& statement, const char* table, int key_columns)
      : statement_(statement), table_(table), key_columns_(key_columns) {}

  std::int64_t Int(std::int64_t min, std::int64_t max);
  /// From 0 to the largest int32.
  std::int32_t Index() { return static_cast<std::int32_t>(Int(0, kInt32Max)); }
  /// -1 or a seq.
  std::int64_t Version();
  /// `if_null` where the column is null.
  std::int64_t VersionOr(std::int64_t if_null);
  Digest Blob16();
  std::optional<Digest> OptionalBlob16();
  std::string Text();
  /// Empty where the column is null.
  std::string OptionalText();
  std::vector<std::uint16_t> Choices();
  std::vector<std::uint32_t> Samples();
  RunStatus Status();

  /// "table subnets, row seq 5: column loss_bits …", or nothing where every value was sound.
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  static constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

  SQLite::Column Next() { return statement_.getColumn(++column_); }
  bool IsNullNext() const { return statement_.isColumnNull(column_ + 1); }
  void Report(const std::string& what);

  SQLite::Statement& statement_;
  const char* table_;
  int key_columns_;
  int column_ = -1;
  std::optional<std::string> problem_;
};

}  // namespace verbatim
