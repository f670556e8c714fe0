// The SQL of schema version 3 (docs/format.md, "Tables").
#pragma once

#include <array>
#include <string_view>

namespace verbatim {

/// Creates every table and view of a new record.
extern const char kCreateSchemaSql[];

/// Every table that a record must have.
inline constexpr std::array<std::string_view, 8> kTables = {
    "run",      "environment", "layers",      "subnets",
    "accesses", "activity",    "activations", "evaluations"};

}  // namespace verbatim
