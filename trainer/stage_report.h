// What a stage tells of its work: digests, losses, times.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "schedule/task.h"
#include "store/record.h"
#include "supernet/search_space.h"
#include "trainer/dataset.h"
#include "trainer/device_stream.h"
#include "trainer/layer_state.h"
#include "trainer/run_context.h"
#include "trainer/subnet_run.h"

namespace verbatim {

/// Nothing here waits for the stage's device: what it computes is enqueued on the stage's stream as
/// the tensors are then, and told when it is there. On a CPU that is at once. Without an observer
/// only losses are read. The stage's thread.
class StageReport {
 public:
  /// References outlive it.
  StageReport(const RunContext& context, int stage, DeviceStream& stream)
      : context_(context), stage_(stage), stream_(stream) {}

  void Batch(std::int64_t seq, const verbatim::Batch& batch) const;
  /// Where the record has activations.
  void Activation(const Task& task, const Layer& layer, const at::Tensor& output) const;
  /// Adds a micro-batch's loss to the subnet's; `subnet` lives until its results are handed out.
  void Loss(const Task& task, const at::Tensor& loss, SubnetRun& subnet) const;
  /// A layer's update, with the digests that the record has.
  void Access(std::int64_t seq, const Layer& layer, const LayerState& state, AccessRow access,
              std::span<const at::Tensor> gradients) const;
  void Activity(const Task& task, Phase phase, std::int64_t begin_ns) const;

 private:
  const RunContext& context_;
  const int stage_;
  DeviceStream& stream_;
};

}  // namespace verbatim
