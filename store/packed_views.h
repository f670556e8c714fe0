// The views that show packed columns (store/packed_format.h) as rows, so that sqlite3 can ask them.
#pragma once

#include <string>
#include <vector>

namespace verbatim {

/// The statements that create `accesses`, `activity`, `activations` and `checkpoint_layers`.
std::vector<std::string> PackedViewsSql();

}  // namespace verbatim
