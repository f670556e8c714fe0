// A stage: runs a contiguous range of positions on one device, one task at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "schedule/task.h"
#include "trainer/device_stream.h"
#include "trainer/layer_handover.h"
#include "trainer/range_pass.h"
#include "trainer/run_context.h"
#include "trainer/stage_report.h"
#include "trainer/subnet_run.h"

namespace verbatim {

/// One thread, from its construction on: it makes the stage's stream that thread's. Throws what
/// LibTorch throws.
class Stage {
 public:
  /// `context` outlives it.
  Stage(const RunContext& context, int index);

  /// Executes one task of a subnet in flight. What neighbours need has been sent when it returns.
  /// A device that computes behind its host may have a few tasks left to do then, not more: what
  /// is ready on the device and what the scheduler takes for ready would drift apart.
  void Execute(const Task& task, SubnetRun& subnet);

 private:
  bool IsFirst() const { return index_ == 0; }
  bool IsLast() const { return index_ == context_.stages - 1; }

  void Forward(const Task& task, SubnetRun& subnet, OpenRange& range);
  at::Tensor ForwardInput(const Task& task, SubnetRun& subnet);
  at::Tensor MicrobatchLoss(const Task& task, SubnetRun& subnet, const at::Tensor& logits);
  LayerRead Read(const Layer& layer, std::int64_t seq);
  void Send(int to, const Task& task, const at::Tensor& tensor);
  void ObserveVersions(SubnetRun& subnet, OpenRange& range);
  void Backward(const Task& task, SubnetRun& subnet, OpenRange& range);
  void Update(const Task& task, const SubnetRun& subnet, OpenRange& range);
  void UpdateLayer(const SubnetRun& subnet, const LayerUse& use);
  void KeepUp();

  const RunContext& context_;
  const int index_;
  const std::unique_ptr<DeviceStream> stream_;
  LayerHandover layers_;
  const StageReport report_;
  const RangePass pass_;
  std::deque<Mark> executed_;                         ///< by the host, perhaps not by the device
  std::unordered_map<std::int64_t, OpenRange> open_;  ///< by seq
};

}  // namespace verbatim
