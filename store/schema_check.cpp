#include "store/schema_check.h"

#include <fmt/format.h>

#include "store/schema.h"

namespace verbatim {

std::vector<std::string> SchemaProblems(SQLite::Database& database, RunKind kind) {
  std::vector<std::string> problems;
  SQLite::Statement select(database,
                           "SELECT sql FROM sqlite_master WHERE type = ? AND name = ? AND"
                           " tbl_name = name");
  for (const SchemaObject& object : RecordSchema(kind)) {
    select.reset();
    select.bind(1, object.type);
    select.bind(2, object.name);
    if (!select.executeStep()) {
      problems.push_back(fmt::format("there is no {} {}", object.type, object.name));
    } else if (select.getColumn(0).getString() != object.sql) {
      problems.push_back(
          fmt::format("the definition of {} {} was changed", object.type, object.name));
    }
  }
  SQLite::Statement triggers(database, "SELECT name FROM sqlite_master WHERE type = 'trigger'");
  while (triggers.executeStep()) {
    problems.push_back(fmt::format("there is a trigger, {}, which no run adds",
                                   triggers.getColumn(0).getString()));
  }
  return problems;
}

}  // namespace verbatim
