// The numeric environment: set to be deterministic, and described for the record.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// Deterministic algorithms on, TF32 off, cuDNN benchmark off; the cuBLAS workspace is fixed unless
/// the user has fixed it (CUBLAS_WORKSPACE_CONFIG, which is recorded; LibTorch takes :4096:8 and
/// :16:8 alone). Call once, before the first operator.
void ConfigureDeterminism();

/// Whatever bears on a run's bits, and what helps to find the machine again (keys that start with
/// "info."), in key order. docs/format.md lists the keys.
std::vector<EnvironmentRow> DescribeEnvironment(at::Device device, std::int64_t threads_per_stage);

/// Whether runs can use GPUs here, and if not, why: "built in, not usable: no CUDA-capable device
/// is detected".
std::string DescribeCuda();

/// The devices that runs can use here: "cpu", "cuda:0 (NVIDIA H200)".
std::vector<std::string> ListDevices();

}  // namespace verbatim
