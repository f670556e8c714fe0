// What only a build with CUDA can do, as plain functions. A build without has trainer/cuda/none.cpp
// instead, which says so; nothing else of the trainer is compiled differently.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <string>

#include "base/keyed_random.h"

namespace verbatim {

bool HasCudaBuild();
/// That this process may use; 0 where there is none, or no driver.
int CudaDeviceCount();
/// Why there is none, as CUDA says it: "no CUDA-capable device is detected".
std::string CudaObstacle();
/// "NVIDIA H200".
std::string CudaDeviceName(int index);
/// What docs/format.md lists of a GPU and its libraries, added by key.
void AddCudaFacts(int index, std::map<std::string, std::string>& facts);
/// Whether memory goes from one device to the other directly; else copies go through the host.
bool CanCopyDirectly(int from, int to);

/// Enqueues on the current stream of the tensor's device: TensorDigest of a contiguous tensor, 16
/// bytes at `result` on that device.
void EnqueueDigest(const at::Tensor& tensor, std::byte* result);
/// Likewise: DropoutMask (trainer/operators.h) of a contiguous float32 tensor, with its bits.
void EnqueueDropoutMask(const RandomKey& key, double probability, at::Tensor& mask);

}  // namespace verbatim
