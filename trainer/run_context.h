// What the stages of a run share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "recorder/observer.h"
#include "schedule/recompute.h"
#include "store/record.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/checkpoint_capture.h"
#include "trainer/dataset.h"
#include "trainer/device_stream.h"
#include "trainer/layer_copies.h"
#include "trainer/layer_state.h"
#include "trainer/result_queue.h"
#include "trainer/stage_devices.h"
#include "trainer/stage_probe.h"
#include "trainer/transport.h"

namespace verbatim {

/// References outlive the stages.
struct RunContext {
  const Spec& spec;
  const SearchSpace& space;
  int stages;
  const Dataset& dataset;
  std::vector<LayerState>& layers;  ///< by layer id
  std::mutex& delayed_layers;       ///< guards the states of layers with a delay
  Transport& transport;
  const StageDevices& devices;  ///< of this rank's stages
  const OpenStream& open_stream;
  ResultQueue& results;  ///< what is told to the observer, and the losses
  RecordLevel record_level = RecordLevel::kWeights;
  Observer* observer = nullptr;               ///< null: nothing is digested or reported
  std::function<std::int64_t()> nanoseconds;  ///< clock since the run's start
  StageProbe* probe = nullptr;                ///< null: nobody looks in
  CheckpointCapture* checkpoints = nullptr;   ///< null: none are taken
  RecomputePlan recompute = {};
  /// Where layers that nobody writes are read; null: in `layers`, as all others.
  const LayerCopies* copies = nullptr;
};

}  // namespace verbatim
