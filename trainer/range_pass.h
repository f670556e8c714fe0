// A micro-batch's way through a stage's range of a subnet, forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "schedule/recompute.h"
#include "schedule/task.h"
#include "supernet/search_space.h"
#include "trainer/layer_state.h"
#include "trainer/operators.h"
#include "trainer/run_context.h"
#include "trainer/stage_report.h"
#include "trainer/subnet_run.h"

namespace verbatim {

/// One layer of the range, as a subnet uses it.
struct LayerUse {
  const Layer* layer;
  LayerRead read;
  /// Batch norm and a delay: the batch statistics of each micro-batch.
  std::vector<std::vector<at::Tensor>> statistics;
  /// Of a versioned layer's parameters: summed over the micro-batches so far.
  std::vector<at::Tensor> gradients;
};

/// What is kept of a micro-batch's way through a segment, between its forward and its backward.
struct SegmentActivation {
  at::Tensor input;   ///< leaf of the segment's graph
  at::Tensor output;  ///< undefined where the segment is computed again
};

/// A subnet's part of a stage, between its first forward and its update.
struct OpenRange {
  std::vector<LayerUse> uses;          ///< by position of the range
  std::vector<RangeSegment> segments;  ///< of the range, by the run's RecomputePlan
  /// By micro-batch, then by segment. The last stage's last output is the loss.
  std::map<std::int32_t, std::vector<SegmentActivation>> activations;
};

/// One thread at a time. Throws what LibTorch throws.
class RangePass {
 public:
  /// References outlive it.
  RangePass(const RunContext& context, const StageReport& report)
      : context_(context), report_(report) {}

  /// The range's output of a micro-batch, of which the range keeps what its backward needs. Who
  /// holds the output itself holds the last segment's graph.
  at::Tensor Forward(const Task& task, const SubnetRun& subnet, const at::Tensor& input,
                     OpenRange& range) const;

  /// Adds a micro-batch's gradients to the sums, a tied embedding's to the subnet's, and forgets
  /// its activations, segment by segment from the last one; one that keeps its input alone is
  /// computed again before. `output_gradient` is undefined where the output is the loss. The
  /// gradient of the input, where it needs one, is handed to `give_input_gradient` as soon as it is
  /// there.
  void Backward(const Task& task, const at::Tensor& output_gradient,
                const std::function<void(const at::Tensor&)>& give_input_gradient,
                SubnetRun& subnet, OpenRange& range) const;

 private:
  /// Whether a micro-batch passes layers for its forward, or for its backward, once more: then no
  /// buffer is written and nothing is reported.
  enum class Pass { kFirst, kAgain };
  /// One micro-batch's, through a segment.
  struct SegmentGradients {
    at::Tensor input;                    ///< undefined where it needs none
    at::Tensor embedding;                ///< of a tied head
    std::vector<at::Tensor> parameters;  ///< of all trainable layers, in order
  };

  std::span<LayerUse> UsesOf(const RangeSegment& segment, OpenRange& range) const;
  at::Tensor RunLayers(const Task& task, const SubnetRun& subnet, const at::Tensor& input,
                       Pass pass, std::span<LayerUse> uses) const;
  void ReportOutput(const Task& task, const Layer& layer, const at::Tensor& output) const;
  /// The buffers that a layer's forward writes: its own, or new ones where they wait for the
  /// update.
  void ChooseBuffers(LayerUse& use, OperatorContext& operator_context) const;
  RandomKey DropoutKey(const Task& task, const Layer& layer) const;
  /// Nothing where the segment has no graph.
  SegmentGradients GradientsOf(const Task& task, const SubnetRun& subnet,
                               SegmentActivation activation, at::Tensor output_gradient,
                               const RangeSegment& segment, std::span<LayerUse> uses) const;
  /// Whether the segment's graph holds the stem's embedding as the matrix of a head tied to it, and
  /// the embedding is trained.
  bool HasTiedGradient(const RangeSegment& segment) const;
  /// Adds one micro-batch's gradients of all trainable parameters of `uses`.
  void Accumulate(const Task& task, std::span<const at::Tensor> gradients,
                  std::span<LayerUse> uses) const;

  const RunContext& context_;
  const StageReport& report_;
};

}  // namespace verbatim
