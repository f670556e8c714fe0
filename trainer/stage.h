// A stage: runs a contiguous range of positions on one device, one task at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "recorder/observer.h"
#include "schedule/task.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/checkpoint_capture.h"
#include "trainer/layer_state.h"
#include "trainer/operators.h"
#include "trainer/stage_probe.h"
#include "trainer/subnet_run.h"
#include "trainer/transport.h"

namespace verbatim {

/// What all stages of a run share. References outlive the stages.
struct RunContext {
  const Spec& spec;
  const SearchSpace& space;
  int stages;
  const Dataset& dataset;
  std::vector<LayerState>& layers;  ///< by layer id
  std::mutex& delayed_layers;       ///< guards the states of layers with a delay
  Transport& transport;
  at::Device device;
  RecordLevel record_level = RecordLevel::kWeights;
  Observer* observer = nullptr;               ///< null: nothing is digested or reported
  std::function<std::int64_t()> nanoseconds;  ///< clock since the run's start
  StageProbe* probe = nullptr;                ///< null: nobody looks in
  CheckpointCapture* checkpoints = nullptr;   ///< null: none are taken
};

/// One thread at a time. Throws what LibTorch throws.
class Stage {
 public:
  Stage(const RunContext& context, int index);

  /// Executes one task of a subnet in flight. What neighbours need has been sent when it returns.
  void Execute(const Task& task, SubnetRun& subnet);

 private:
  /// A micro-batch between its forward and its backward.
  struct Activation {
    at::Tensor input;   ///< leaf of this stage's graph
    at::Tensor output;  ///< activation, or the loss on the last stage
  };
  /// One layer of the range, as a subnet uses it.
  struct LayerUse {
    const Layer* layer;
    LayerRead read;
    /// Batch norm and a delay: the batch statistics of each micro-batch.
    std::vector<std::vector<at::Tensor>> statistics;
  };
  /// A subnet between its first forward and its update.
  struct OpenSubnet {
    std::vector<LayerUse> uses;                      ///< by position of the range
    std::map<std::int32_t, Activation> activations;  ///< by micro-batch
    std::vector<at::Tensor> gradients;  ///< of the range's trainable parameters, accumulated
  };

  bool IsFirst() const { return index_ == 0; }
  bool IsLast() const { return index_ == context_.stages - 1; }

  void Forward(const Task& task, SubnetRun& subnet, OpenSubnet& open);
  at::Tensor ForwardInput(const Task& task, SubnetRun& subnet);
  at::Tensor ForwardRange(const Task& task, const SubnetRun& subnet, OpenSubnet& open,
                          const at::Tensor& input);
  /// The buffers that a layer's forward writes: its own, or new ones where they wait for the
  /// update.
  void ChooseBuffers(LayerUse& use, OperatorContext& operator_context) const;
  RandomKey DropoutKey(const Task& task, const Layer& layer) const;
  at::Tensor MicrobatchLoss(const Task& task, SubnetRun& subnet, const at::Tensor& logits);
  LayerRead Read(const Layer& layer, std::int64_t seq) const;
  void ObserveVersions(SubnetRun& subnet, OpenSubnet& open);
  void Backward(const Task& task, SubnetRun& subnet, OpenSubnet& open);
  /// Whether this stage's graph holds the stem's embedding as the matrix of a head tied to it, and
  /// the embedding is trained.
  bool HasTiedGradient() const;
  /// Adds one micro-batch's gradients, given as OpenSubnet::gradients, to the sums.
  void Accumulate(const Task& task, std::span<const at::Tensor> gradients, OpenSubnet& open);
  void Update(const Task& task, const SubnetRun& subnet, OpenSubnet& open);
  void UpdateLayer(const SubnetRun& subnet, const LayerUse& use,
                   std::span<const at::Tensor> gradients);
  void ReportAccess(const SubnetRun& subnet, const Layer& layer, const LayerState& state,
                    AccessRow access, std::span<const at::Tensor> gradients);
  void ReportActivity(const Task& task, Phase phase, std::int64_t begin_ns);

  const RunContext& context_;
  const int index_;
  std::unordered_map<std::int64_t, OpenSubnet> open_;
};

}  // namespace verbatim
