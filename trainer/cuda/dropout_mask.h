// Dropout masks made on a GPU, with the bits of those made on the CPU. C++17; needs no CUDA header.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "trainer/dropout_value.h"

struct CUstream_st;  // cudaStream_t is CUstream_st*

namespace verbatim {

/// Enqueues on `stream`: `size` elements at `mask`, in memory of the current device. kFailed where
/// CUDA refuses the launch.
Status FillDropoutMaskOnDevice(const RandomKey& key, const DropoutRule& rule, std::int64_t size,
                               float* mask, CUstream_st* stream);

}  // namespace verbatim
