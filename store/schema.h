// The SQL of schema version 4 (docs/format.md, "Tables").
#pragma once

#include <string>
#include <vector>

namespace verbatim {

/// A table or view of every record.
struct SchemaObject {
  std::string type;  ///< "table", "view"
  std::string name;
  std::string sql;  ///< the statement that creates it, exactly as SQLite keeps it in sqlite_schema
};

/// In the order in which they are created.
const std::vector<SchemaObject>& RecordSchema();

}  // namespace verbatim
