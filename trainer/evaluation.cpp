#include "trainer/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "trainer/layer_handover.h"
#include "trainer/operators.h"

namespace verbatim {
namespace {

/// One subnet with batch norm statistics of its own.
class EvaluatedSubnet {
 public:
  EvaluatedSubnet(const Experiment& experiment, std::int64_t index)
      : experiment_(experiment),
        index_(index),
        choices_(DrawUniformChoices(
            experiment.space, RandomKey{experiment.spec.seed, RandomPurpose::kEvaluationSubnet, 0,
                                        0, static_cast<std::uint32_t>(index)})) {
    const bool calibrates = experiment.spec.evaluation.calibration_batches > 0;
    for (int position = 0; position < experiment.space.positions(); ++position) {
      const Layer& layer = experiment.space.LayerAt(position, choices_);
      const LayerState& state = experiment.layers[layer.id];
      parameters_.push_back(LeavesOn(experiment.device, state.parameters));
      buffers_.push_back(calibrates ? FreshBuffers(layer)
                                    : LeavesOn(experiment.device, state.buffers));
    }
  }

  EvaluationRow Evaluate() const {
    Calibrate();
    EvaluationRow row;
    row.index = index_;
    row.choices = choices_;
    const std::int64_t samples = experiment_.dataset->held_out_size();
    row.total = samples * experiment_.dataset->targets();
    const std::int64_t batch = experiment_.spec.training.batch;
    for (std::int64_t first = 0; first < samples; first += batch) {
      const std::int64_t last = std::min(first + batch, samples);
      const Batch held_out = experiment_.dataset->HeldOutBatch(first, last, experiment_.device);
      const at::Tensor logits = Forward(held_out.inputs, BatchNormMode{false, 0.0});
      row.correct += logits.argmax(-1).eq(held_out.labels).sum().item<std::int64_t>();
    }
    return row;
  }

 private:
  /// As a new layer's: mean 0, variance 1.
  std::vector<at::Tensor> FreshBuffers(const Layer& layer) const {
    std::vector<at::Tensor> buffers;
    const auto options = at::TensorOptions().dtype(at::kFloat).device(experiment_.device);
    for (const TensorSpec& buffer : layer.buffers) {
      buffers.push_back(buffer.init == ParameterInit::kOnes ? at::ones(buffer.shape, options)
                                                            : at::zeros(buffer.shape, options));
    }
    return buffers;
  }

  void Calibrate() const {
    const std::int64_t batches = experiment_.spec.evaluation.calibration_batches;
    for (std::int64_t b = 0; b < batches; ++b) {
      const Batch batch = experiment_.dataset->TrainingBatch(
          experiment_.dataset->CalibrationSamples(index_, b), experiment_.device);
      Forward(batch.inputs, BatchNormMode{true, 1.0 / static_cast<double>(b + 1)});
    }
  }

  at::Tensor Forward(const at::Tensor& inputs, const BatchNormMode& batch_norm) const {
    at::Tensor activation = inputs;
    for (int position = 0; position < experiment_.space.positions(); ++position) {
      const Layer& layer = experiment_.space.LayerAt(position, choices_);
      const OperatorContext context{.parameters = parameters_[position],
                                    .buffers = buffers_[position],
                                    .batch_norm = batch_norm,
                                    .dropout = {},
                                    .tied = layer.op.tied ? Embedding() : at::Tensor()};
      activation = ApplyLayer(layer, activation, context);
    }
    return activation;
  }

  const at::Tensor& Embedding() const { return parameters_.front().front(); }

  const Experiment& experiment_;
  const std::int64_t index_;
  const Choices choices_;
  std::vector<std::vector<at::Tensor>> parameters_;  ///< by position
  std::vector<std::vector<at::Tensor>> buffers_;     ///< by position
};

}  // namespace

std::vector<EvaluationRow> EvaluateSubnets(const Experiment& experiment,
                                           const std::function<bool(std::int64_t)>& on_progress) {
  const at::NoGradGuard no_grad;
  std::vector<EvaluationRow> rows;
  for (std::int64_t index = 0; index < experiment.spec.evaluation.subnets; ++index) {
    rows.push_back(EvaluatedSubnet(experiment, index).Evaluate());
    if (on_progress && !on_progress(index + 1)) break;
  }
  return rows;
}

}  // namespace verbatim
