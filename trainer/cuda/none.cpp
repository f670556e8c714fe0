// A build without CUDA.
#include "base/check.h"
#include "trainer/cuda/cuda_device.h"

namespace verbatim {

bool HasCudaBuild() {
  return false;
}

int CudaDeviceCount() {
  return 0;
}

std::string CudaObstacle() {
  return "this build is without CUDA";
}

std::string CudaDeviceName(int index) {
  VERBATIM_CHECK(false, "CUDA device {}", index);
}

void AddCudaFacts(int index, std::map<std::string, std::string>&) {
  VERBATIM_CHECK(false, "CUDA device {}", index);
}

bool CanCopyDirectly(int, int) {
  return false;
}

void EnqueueDigest(const at::Tensor& tensor, std::byte*) {
  VERBATIM_CHECK(false, "a tensor on {}", tensor.device().str());
}

void EnqueueDropoutMask(const RandomKey&, double, at::Tensor& mask) {
  VERBATIM_CHECK(false, "a tensor on {}", mask.device().str());
}

}  // namespace verbatim
