// Whether the seals that a record keeps (store/seal.h) are those of its rows.
#pragma once

#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// Start, circumstances, end, and every checkpoint.
Check CheckSeals(const RecordReader& reader);

}  // namespace verbatim
