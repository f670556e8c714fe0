#include "trainer/experiment.h"

#include <ATen/Context.h>
#include <fmt/format.h>

namespace verbatim {

Result<Experiment> PrepareExperiment(const Spec& spec, const std::filesystem::path& spec_folder,
                                     const std::optional<std::filesystem::path>& data_folder,
                                     at::Device device) {
  const std::filesystem::path folder = data_folder.value_or(DataFolderOf(spec, spec_folder));
  ASSIGN_OR_RETURN(auto dataset, Dataset::Load(spec, folder));
  ASSIGN_OR_RETURN(SearchSpace space,
                   SearchSpace::Build(spec, dataset->shape(), dataset->classes()));
  ASSIGN_OR_RETURN(auto sampler, MakeSampler(spec, space, spec_folder));
  std::vector<LayerState> layers;
  layers.reserve(space.layers().size());
  for (const Layer& layer : space.layers()) {
    layers.push_back(InitialLayerState(layer, spec.training.optimizer, spec.seed, device));
  }
  return Experiment{
      spec, std::move(dataset), std::move(space), std::move(sampler), std::move(layers), device};
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

Result<at::Device> ParseDevice(const std::string& name) {
  std::optional<at::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    return UsageError(fmt::format("--device {}: no such device", name), "use cpu, cuda or cuda:N");
  }
  if (device->is_cpu()) return *device;
  if (!device->is_cuda()) {
    return UsageError(fmt::format("--device {}: only cpu and cuda are supported", name));
  }
#ifdef VERBATIM_CUDA_ENABLED
  const auto count = at::globalContext().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (count == 0) {
    return Failed(fmt::format("--device {}: this machine has no usable CUDA device", name),
                  "check the driver with nvidia-smi, or use --device cpu");
  }
  if (device->has_index() && device->index() >= count) {
    return UsageError(fmt::format("--device {}: this machine has {} CUDA device{}", name, count,
                                  count == 1 ? "" : "s"));
  }
  return at::Device(at::kCUDA, device->has_index() ? device->index() : c10::DeviceIndex{0});
#else
  return UsageError(fmt::format("--device {}: this build is without CUDA", name),
                    "build with -DVERBATIM_CUDA=ON, or use --device cpu");
#endif
}

Result<at::Device> ParseRecordedDevice(const std::string& recorded) {
  Result<at::Device> device = ParseDevice(recorded.substr(0, recorded.find(':')));
  if (device) return device;
  return Failed(fmt::format("the run was made on {}, which this program cannot use here: {}",
                            recorded, device.error().message),
                "re-execute it on a machine, and with a build, that has such a device");
}

}  // namespace verbatim
