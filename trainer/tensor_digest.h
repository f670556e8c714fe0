// Digest of a LibTorch tensor, on the device where it lives.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/digest.h"

namespace verbatim {

/// Equal bits for equal tensors on any device (docs/format.md, section 4). The tensor may have any
/// strides; its contiguous form is digested.
Digest TensorDigest(const at::Tensor& tensor);

}  // namespace verbatim
