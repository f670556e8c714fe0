#include "trainer/experiment.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/cuda/cuda_device.h"
#include "trainer/operator_check.h"
#include "trainer/stage_devices.h"

namespace verbatim {

Result<Experiment> PrepareExperiment(const Spec& spec, const std::filesystem::path& spec_folder,
                                     const std::optional<std::filesystem::path>& data_folder,
                                     std::vector<at::Device> devices, LayersHome where) {
  const at::Device device = devices.front();
  const at::Device home = where == LayersHome::kHost ? at::Device(at::kCPU) : device;
  const std::filesystem::path folder = data_folder.value_or(DataFolderOf(spec, spec_folder));
  ASSIGN_OR_RETURN(auto dataset, Dataset::Load(spec, folder));
  ASSIGN_OR_RETURN(SearchSpace space,
                   SearchSpace::Build(spec, dataset->shape(), dataset->classes()));
  ASSIGN_OR_RETURN(auto sampler, MakeSampler(spec, space, spec_folder));
  std::vector<LayerState> layers;
  layers.reserve(space.layers().size());
  for (const Layer& layer : space.layers()) {
    layers.push_back(InitialLayerState(layer, spec.training.optimizer, spec.seed, home));
  }
  Experiment experiment{
      spec,   std::move(dataset), std::move(space), std::move(sampler), std::move(layers), home,
      device, std::move(devices)};
  // The CPU's are known to be deterministic.
  if (!device.is_cpu()) RETURN_IF_ERROR(CheckOperators(experiment));
  return experiment;
}

std::vector<LayerRow> DescribeLayers(const Experiment& experiment) {
  std::vector<LayerRow> rows;
  for (const Layer& layer : experiment.space.layers()) {
    rows.push_back(LayerRow{layer.id, layer.name, layer.position, layer.candidate,
                            Describe(layer.op), layer.IsVersioned(),
                            WeightsDigest(layer, experiment.layers[layer.id])});
  }
  return rows;
}

namespace {

/// All that this process sees.
std::vector<at::Device> CudaDevices(int count) {
  std::vector<at::Device> devices;
  for (int i = 0; i < count; ++i) {
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(i));
  }
  return devices;
}

/// GPUs of one model give the same bits.
Status CheckModels(const std::string& name, const std::vector<at::Device>& devices) {
  const int first = devices.front().index();
  for (const at::Device device : devices) {
    if (CudaDeviceName(device.index()) == CudaDeviceName(first)) continue;
    return UsageError(
        fmt::format("--device {}: GPU {} is {}, GPU {} is {}, and they give other bits", name,
                    first, CudaDeviceName(first), device.index(), CudaDeviceName(device.index())),
        "use --device cuda:N, or name those of one model in CUDA_VISIBLE_DEVICES");
  }
  return {};
}

}  // namespace

Result<std::vector<at::Device>> ParseDevices(const std::string& name, const LocalRank& local) {
  std::optional<at::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    return UsageError(fmt::format("--device {}: no such device", name), "use cpu, cuda or cuda:N");
  }
  if (device->is_cpu()) return std::vector{*device};
  if (!device->is_cuda()) {
    return UsageError(fmt::format("--device {}: only cpu and cuda are supported", name));
  }
  if (!HasCudaBuild()) {
    return UsageError(fmt::format("--device {}: this build is without CUDA", name),
                      "build with -DVERBATIM_CUDA=ON, or use --device cpu");
  }
  const int count = CudaDeviceCount();
  if (count == 0) {
    return Failed(fmt::format("--device {}: this machine has no usable CUDA device ({})", name,
                              CudaObstacle()),
                  "check the driver with nvidia-smi, or use --device cpu");
  }
  if (device->has_index() && device->index() >= count) {
    return UsageError(fmt::format("--device {}: this machine has {} CUDA device{}", name, count,
                                  count == 1 ? "" : "s"));
  }
  if (device->has_index()) return std::vector{*device};
  std::vector<at::Device> devices = ShareOf(CudaDevices(count), local);
  RETURN_IF_ERROR(CheckModels(name, devices));
  return devices;
}

Result<std::vector<at::Device>> ParseRecordedDevices(const std::string& recorded,
                                                     const LocalRank& local) {
  auto devices = ParseDevices(recorded.substr(0, recorded.find(':')), local);
  if (devices) return devices;
  return Failed(fmt::format("the run was made on {}, which this program cannot use here: {}",
                            recorded, devices.error().message),
                "re-execute it on a machine, and with a build, that has such a device");
}

}  // namespace verbatim
