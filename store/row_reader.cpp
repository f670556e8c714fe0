#include "store/row_reader.h"

#include <fmt/format.h>

#include "store/values.h"

namespace verbatim {
namespace {

constexpr int kShownKeyBytesMax = 40;

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

std::string RowReader::Key() const {
  std::string key;
  for (int i = 0; i < key_columns_; ++i) {
    // As text, last of all: it may change the column's type.
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, i));
    key += fmt::format("{}{} {:.{}}", i == 0 ? "" : ", ", sqlite3_column_name(statement_, i),
                       text == nullptr ? "" : text, kShownKeyBytesMax);
  }
  return key;
}

void RowReader::Report(const std::string& what) {
  if (problem_) return;
  const std::string column = sqlite3_column_name(statement_, column_);
  problem_ = fmt::format("table {}, row {}: column {} {}", table_, Key(), column, what);
}

void RowReader::ReportNumber(std::int64_t min, std::int64_t max) {
  const int type = sqlite3_column_type(statement_, column_);
  if (type == SQLITE_INTEGER) {
    const std::int64_t value = sqlite3_column_int64(statement_, column_);
    return Report(fmt::format("is {}, not in {} to {}", value, min, max));
  }
  Report(fmt::format("is {}, not a number", TypeName(type)));
}

void RowReader::ReportType(const char* expected) {
  const int type = sqlite3_column_type(statement_, column_);
  Report(fmt::format("is {} of length {}, not {}", TypeName(type),
                     sqlite3_column_bytes(statement_, column_), expected));
}

std::string_view RowReader::TextView() {
  sqlite3_value* const column = Next();
  if (sqlite3_value_type(column) == SQLITE_TEXT) return Bytes(column);
  ReportType("text");
  return {};
}

void RowReader::Choices(std::vector<std::uint16_t>& choices) {
  if (!DecodeChoices(TextView(), choices)) {
    Report("is not a list of candidates such as [0,3,12]");
  }
}

void RowReader::Samples(std::vector<std::uint32_t>& samples) {
  sqlite3_value* const column = Next();
  const bool is_blob = sqlite3_value_type(column) == SQLITE_BLOB;
  if (!is_blob || !DecodeSamples(Bytes(column), samples)) ReportType("four bytes per sample");
}

RunStatus RowReader::Status() {
  const std::string text = Text();
  if (const auto status = RunStatusFromString(text)) return *status;
  Report(fmt::format("is '{}', not a status that a run can have", text.substr(0, 20)));
  return RunStatus::kRunning;
}

}  // namespace verbatim
