// A stage: runs a contiguous range of positions on one device, one task at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <unordered_map>

#include "schedule/task.h"
#include "trainer/range_pass.h"
#include "trainer/run_context.h"
#include "trainer/subnet_run.h"

namespace verbatim {

/// One thread at a time. Throws what LibTorch throws.
class Stage {
 public:
  Stage(const RunContext& context, int index);

  /// Executes one task of a subnet in flight. What neighbours need has been sent when it returns.
  void Execute(const Task& task, SubnetRun& subnet);

 private:
  bool IsFirst() const { return index_ == 0; }
  bool IsLast() const { return index_ == context_.stages - 1; }

  void Forward(const Task& task, SubnetRun& subnet, OpenRange& range);
  at::Tensor ForwardInput(const Task& task, SubnetRun& subnet);
  at::Tensor MicrobatchLoss(const Task& task, SubnetRun& subnet, const at::Tensor& logits);
  LayerRead Read(const Layer& layer, std::int64_t seq) const;
  void ObserveVersions(SubnetRun& subnet, OpenRange& range);
  void Backward(const Task& task, SubnetRun& subnet, OpenRange& range);
  void Update(const Task& task, const SubnetRun& subnet, OpenRange& range);
  void UpdateLayer(const SubnetRun& subnet, const LayerUse& use);
  void ReportAccess(const SubnetRun& subnet, const Layer& layer, const LayerState& state,
                    AccessRow access, std::span<const at::Tensor> gradients);
  void ReportActivity(const Task& task, Phase phase, std::int64_t begin_ns);

  const RunContext& context_;
  const int index_;
  const RangePass pass_;
  std::unordered_map<std::int64_t, OpenRange> open_;  ///< by seq
};

}  // namespace verbatim
