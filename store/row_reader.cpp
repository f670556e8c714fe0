#include "store/row_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <string_view>

#include "store/format.h"
#include "store/values.h"

namespace verbatim {
namespace {

constexpr std::size_t kShownKeyBytesMax = 40;

std::string_view Bytes(const SQLite::Column& column) {
  const auto* data = static_cast<const char*>(column.getBlob());
  return {data == nullptr ? "" : data, static_cast<std::size_t>(column.getBytes())};
}

const char* TypeName(int type) {
  switch (type) {
    case SQLITE_INTEGER:
      return "a number";
    case SQLITE_FLOAT:
      return "a fraction";
    case SQLITE_TEXT:
      return "text";
    case SQLITE_BLOB:
      return "bytes";
    default:
      return "empty";
  }
}

}  // namespace

void RowReader::Report(const std::string& what) {
  if (problem_) return;
  const int column = column_;
  std::string key;
  for (int i = 0; i < key_columns_; ++i) {
    key += fmt::format("{}{} {}", i == 0 ? "" : ", ", statement_.getColumnName(i),
                       std::string(Bytes(statement_.getColumn(i))).substr(0, kShownKeyBytesMax));
  }
  problem_ = fmt::format("table {}, row {}: column {} {}", table_, key,
                         statement_.getColumnName(column), what);
}

std::int64_t RowReader::Int(std::int64_t min, std::int64_t max) {
  const SQLite::Column column = Next();
  if (column.getType() != SQLITE_INTEGER) {
    Report(fmt::format("is {}, not a number", TypeName(column.getType())));
    return min;
  }
  const std::int64_t value = column.getInt64();
  if (value >= min && value <= max) return value;
  Report(fmt::format("is {}, not in {} to {}", value, min, max));
  return min;
}

std::int64_t RowReader::Version() {
  return Int(-1, kSeqMax);
}

std::int64_t RowReader::VersionOr(std::int64_t if_null) {
  if (!IsNullNext()) return Version();
  ++column_;
  return if_null;
}

Digest RowReader::Blob16() {
  Digest digest;
  const SQLite::Column column = Next();
  const std::string_view bytes = Bytes(column);
  if (column.getType() != SQLITE_BLOB || bytes.size() != digest.bytes.size()) {
    Report(fmt::format("is {} of length {}, not a digest of 16 bytes", TypeName(column.getType()),
                       bytes.size()));
    return digest;
  }
  std::memcpy(digest.bytes.data(), bytes.data(), bytes.size());
  return digest;
}

std::optional<Digest> RowReader::OptionalBlob16() {
  if (!IsNullNext()) return Blob16();
  ++column_;
  return std::nullopt;
}

std::string RowReader::Text() {
  const SQLite::Column column = Next();
  if (column.getType() == SQLITE_TEXT) return std::string(Bytes(column));
  Report(fmt::format("is {}, not text", TypeName(column.getType())));
  return {};
}

std::string RowReader::OptionalText() {
  if (!IsNullNext()) return Text();
  ++column_;
  return {};
}

std::vector<std::uint16_t> RowReader::Choices() {
  const std::string text = Text();
  if (auto choices = DecodeChoices(text)) return *std::move(choices);
  Report("is not a list of candidates such as [0,3,12]");
  return {};
}

std::vector<std::uint32_t> RowReader::Samples() {
  const SQLite::Column column = Next();
  auto samples = DecodeSamples(Bytes(column));
  if (column.getType() == SQLITE_BLOB && samples) return *std::move(samples);
  Report(fmt::format("is {} of length {}, not four bytes per sample", TypeName(column.getType()),
                     column.getBytes()));
  return {};
}

RunStatus RowReader::Status() {
  const std::string text = Text();
  if (const auto status = RunStatusFromString(text)) return *status;
  Report(fmt::format("is '{}', not a status that a run can have", text.substr(0, 20)));
  return RunStatus::kRunning;
}

}  // namespace verbatim
