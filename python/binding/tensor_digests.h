// Digests of many tensors at once, on several threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "recorder/digest.h"

namespace verbatim::python {

/// As TensorView, with a shape of its own. `data` is the caller's.
struct HostTensor {
  DType dtype;
  std::vector<std::int64_t> shape;
  const void* data;
};

/// DigestTensor of each, on up to `threads` threads (the caller's among them), fewer where there is
/// little to do. CHECKs as DigestTensor.
std::vector<Digest> DigestTensors(std::span<const HostTensor> tensors, int threads);

}  // namespace verbatim::python
