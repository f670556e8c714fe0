// An experiment: a spec made real on the devices of one process, before and after training.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/stream.h"
#include "trainer/dataset.h"
#include "trainer/layer_state.h"
#include "trainer/ranks/launcher.h"

namespace verbatim {

/// Owns everything that training reads or writes.
struct Experiment {
  Spec spec;
  std::unique_ptr<Dataset> dataset;
  SearchSpace space;
  std::unique_ptr<Sampler> sampler;
  std::vector<LayerState> layers;   ///< by layer id
  at::Device home;                  ///< where the layers are before and after training
  at::Device device;                ///< where subnets are evaluated
  std::vector<at::Device> devices;  ///< that stages may use, of one kind; `device` is the first
};

/// Where layers are while nobody trains them.
enum class LayersHome {
  kDevice,  ///< the first device
  kHost,    ///< for TrainingOptions::device_memory: there may be more of them than a device holds
};

/// As a run under such a bound, or without one, needs it.
inline LayersHome HomeFor(const std::optional<std::int64_t>& device_memory) {
  return device_memory ? LayersHome::kHost : LayersHome::kDevice;
}

/// Loads the data, lays out the supernet and draws its initial weights. `spec_folder` is where the
/// spec's relative paths start; `data_folder` replaces the spec's data folder.
Result<Experiment> PrepareExperiment(const Spec& spec, const std::filesystem::path& spec_folder,
                                     const std::optional<std::filesystem::path>& data_folder,
                                     std::vector<at::Device> devices,
                                     LayersHome home = LayersHome::kDevice);

/// The record's layer rows; meant for the initial weights, so call it before training.
std::vector<LayerRow> DescribeLayers(const Experiment& experiment);

/// "cpu", "cuda:1", and "cuda" for all that this process sees, or, of several processes on its
/// host, for its share of them: checks that they exist in this build and on this machine. At least
/// one.
Result<std::vector<at::Device>> ParseDevices(const std::string& name, const LocalRank& local = {});

/// Devices of the kind that a run was made on: "cuda:1" was one machine's way to say which, what
/// bears on the bits is the kind. kFailed where this machine or this build has none.
Result<std::vector<at::Device>> ParseRecordedDevices(const std::string& recorded,
                                                     const LocalRank& local = {});

}  // namespace verbatim
