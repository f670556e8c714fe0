#include "trainer/environment.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <torch/csrc/api/include/torch/version.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "base/exception_text.h"
#include "base/processor.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/cuda/nccl_payloads.h"

namespace verbatim {
namespace {

using Facts = std::map<std::string, std::string>;

std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void AddMachine(Facts& facts) {
  const Processor processor = DescribeProcessor();
  facts["cpu.vendor"] = processor.vendor;
  facts["cpu.model"] = processor.model;
  facts["cpu.family_model"] = processor.family_model;
  facts["cpu.stepping"] = processor.stepping;
  facts["cpu.instruction_sets"] = Joined(processor.instruction_sets);
  facts["info.cores"] = std::to_string(std::thread::hardware_concurrency());
  utsname system{};
  if (uname(&system) == 0) {
    facts["info.host"] = system.nodename;
    facts["info.kernel"] = std::string(system.sysname) + " " + system.release;
    facts["cpu.architecture"] = system.machine;
  }
}

void AddLibraries(Facts& facts) {
  facts["libc.version"] = gnu_get_libc_version();  // its cos() enters cosine learning rates
  facts["libtorch.version"] = TORCH_VERSION;
  facts["libtorch.cpu_capability"] = at::get_cpu_capability();
  facts["libtorch.mkl"] = at::hasMKL() ? FirstLine(at::get_mkl_version()) : "none";
  facts["libtorch.onednn"] = at::hasMKLDNN() ? FirstLine(at::get_mkldnn_version()) : "none";
  facts["libtorch.openmp"] = FirstLine(at::get_openmp_version());
  for (const char* name : {"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR"}) {
    facts[std::string("variable.") + name] = EnvironmentVariable(name);
  }
}

void AddDevice(at::Device device, Facts& facts) {
  facts["device.kind"] = device.is_cuda() ? "cuda" : "cpu";
  if (!device.is_cuda()) return;
  AddCudaFacts(device.index(), facts);
  const at::Context& context = at::globalContext();
  const auto on = [](bool is_on) { return is_on ? "on" : "off"; };
  facts["cuda.tf32"] = on(context.allowTF32CuBLAS() || context.allowTF32CuDNN());
  facts["cuda.cudnn_benchmark"] = on(context.benchmarkCuDNN());
  facts["cuda.cudnn_deterministic"] = on(context.deterministicCuDNN());
  for (const char* name :
       {"CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE"}) {
    facts[std::string("variable.") + name] = EnvironmentVariable(name);
  }
}

}  // namespace

void ConfigureDeterminism() {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Filling fresh tensors with NaN finds uses of uninitialised memory and changes no result; it
  // would cost a pass over every tensor.
  context.setDeterministicFillUninitializedMemory(false);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicCuDNN(true);
  context.setAllowTF32CuDNN(false);
  context.setAllowTF32CuBLAS(false);
  // It works on processors with AVX2 alone, and says so on others. oneDNN comes before it anyway.
  context.setUserEnabledNNPACK(false);
}

std::vector<EnvironmentRow> DescribeEnvironment(at::Device device, std::int64_t threads_per_stage) {
  Facts facts;
  AddMachine(facts);
  AddLibraries(facts);
  AddDevice(device, facts);
  facts["threads_per_stage"] = std::to_string(threads_per_stage);
  facts["deterministic_algorithms"] =
      at::globalContext().deterministicAlgorithms() ? "true" : "false";
  std::vector<EnvironmentRow> rows;
  for (const auto& [key, value] : facts) rows.push_back({key, value});
  return rows;
}

std::string DescribeCuda() {
  if (!HasCudaBuild()) return "not built in";
  const int count = CudaDeviceCount();
  if (count == 0) return "built in, not usable: " + CudaObstacle();
  bool is_direct = true;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to)
      is_direct = is_direct && (from == to || CanCopyDirectly(from, to));
  }
  std::string text = std::to_string(count) + (count == 1 ? " device" : " devices");
  if (count > 1) {
    text += is_direct ? ", copies between them are direct"
                      : ", some copies between them go through the host";
  }
  const std::string obstacle = NcclObstacle();
  return text + (obstacle.empty() ? ", NCCL " + NcclVersion() + " between processes"
                                  : ", one process: " + obstacle);
}

std::vector<std::string> ListDevices() {
  std::vector<std::string> devices = {"cpu"};
  for (int i = 0; i < CudaDeviceCount(); ++i) {
    devices.push_back("cuda:" + std::to_string(i) + " (" + CudaDeviceName(i) + ")");
  }
  return devices;
}

}  // namespace verbatim
