// Element types of LibTorch's tensors, as the record's formats number them.
#pragma once

#include <c10/core/ScalarType.h>

#include "base/dtype.h"

namespace verbatim {

/// CHECKs that there is one.
DType ToDType(at::ScalarType type);
/// The inverse; at::ScalarType::Undefined for a value that is no DType.
at::ScalarType ToScalarType(DType dtype);

}  // namespace verbatim
