// The SQL of schema versions 4 and 5 (docs/format.md, "Tables").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// A table or view of every record.
struct SchemaObject {
  std::string type;  ///< "table", "view"
  std::string name;
  std::string sql;  ///< the statement that creates it, exactly as SQLite keeps it in sqlite_schema
};

/// Of one kind of run, in the order in which they are created.
const std::vector<SchemaObject>& RecordSchema(RunKind kind);

/// Its user_version.
std::int32_t SchemaVersion(RunKind kind);
/// Inverse of SchemaVersion; nothing where this program does not read such records.
std::optional<RunKind> KindOfSchema(std::int32_t version);

}  // namespace verbatim
