// Whether a record's tables and views are those that this program creates.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// One line per table or view that is missing or was changed, and per trigger, which none has;
/// empty where all is as it was written. Other things that somebody added do no harm. Throws
/// SQLite::Exception.
std::vector<std::string> SchemaProblems(SQLite::Database& database, RunKind kind);

}  // namespace verbatim
